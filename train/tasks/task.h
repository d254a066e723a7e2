#pragma once

#include <memory>

#include "train/tasks/objective.h"
#include "train/tasks/reader.h"

namespace qkv {

/// One kind of problem: its data, output layer, loss and metrics. Tasks derive from `ExampleTask`;
/// to add one, see CONTRIBUTING.md.
class Task : public Reader, public TrainingObjective {
 protected:
  explicit Task(const Config& config) : Reader(config) {}
};

/// Reads the data and builds the vocabulary: the tokens of the lists `known`, unless there are
/// none, then those of the training split. Throws UserError.
std::unique_ptr<Task> make_task(const Config& config, const Task::Vocabularies& known,
                                ReadCallback& callback);
std::unique_ptr<Task> make_task(const Config& config, ReadCallback& callback);
std::unique_ptr<Task> make_task(const Config& config);
/// For using a trained model: no data is read. Throws FileError when a token list is missing or
/// invalid.
std::unique_ptr<Task> restore_task(const Config& config, const Task::Vocabularies& vocabularies);

}  // namespace qkv
