#pragma once

#include <string>
#include <vector>

#include "inspect/report/loaded_run.h"

namespace qkv::report {

/// The data of model.js besides the weights: {"options": {"model": {"width", ...}, "task":
/// {...}}, "cutting": {"kind", "lower_case"}, "reads_texts", "vocabulary": {"tokens", "labels",
/// "targets"}, "parameters": [{"path", "shape"}]}. The options are those of the config but for
/// paths. Where "reads_texts" is false, the page cannot cut texts as the model does.
Json model_view(const LoadedModel& model);

/// The models of a page as far as it has room: "model" of each of `runs` gets "weights": {number of
/// a checkpoint: base64}. First come the best checkpoints, the main run's before the others', then
/// further ones of the main run, evenly over its training, then those of the others. The best ones
/// are float32 if there is room for all. The rest has 16 bits a value, from -largest to largest of
/// its parameter: {"largest": [...], "values": base64}.
class ModelWeights {
 public:
  /// Adds the checkpoints of run `index` that are not too large.
  void add(std::size_t index, const LoadedRun& run);
  /// Writes those that fit into `room` characters into the runs.
  void write(Json& runs, std::size_t main, std::size_t room) const;

 private:
  struct Weights {
    std::size_t run, checkpoint;
    int rank;           ///< among the checkpoints of a run; 0 for the best
    std::string exact;  ///< of a best checkpoint
    Json rounded;
    std::size_t size;  ///< characters of `rounded`
  };
  std::vector<Weights> all_;
};

}  // namespace qkv::report
