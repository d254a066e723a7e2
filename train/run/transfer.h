#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "train/tasks/network.h"
#include "train/tasks/task.h"

/// Transfer learning: parameters of a trained model.
namespace qkv {

/// The trained model that a run starts from.
struct InitialModel {
  std::string name;  ///< of its run
  std::int64_t step;
  std::map<std::string, Tensor> parameters;  ///< by path
  Task::Vocabularies vocabulary;
  Index heads = 0;
  std::string other_options = {};  ///< of the model, where they differ from this run's
};

/// Reads what train.init names. Throws UserError when its tokens are of another kind than those of
/// `config` or its vectors of another width, so that nothing would fit, and as `read_checkpoint`
/// does.
InitialModel read_initial_model(const Config& config);

/// Loads the parameters that `from` has under the same path in the same shape, of attention with
/// the same number of heads. Of the embedding table and of the output layer these are the rows that
/// belong to the same token or label. Returns
/// lines that say what was loaded and what was not.
std::vector<std::string> load_initial(Network& network, const Task::Vocabularies& vocabulary,
                                      const InitialModel& from);

}  // namespace qkv
