#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "train/tasks/evaluation.h"
#include "train/tasks/network.h"
#include "train/tasks/reader.h"

namespace qkv {

/// How an evaluation runs.
struct EvaluationOptions {
  const Hook* hook = nullptr;  ///< replaces activations of every forward pass
  bool one_by_one = false;     ///< each example alone, without padding, and the loss alone
  bool probabilities = false;  ///< keeps those of all labels, as an ensemble needs them
};

/// One kind of problem: what it takes to read texts and answer with a trained model (`Reader`), and
/// what training and evaluation need: examples, the loss of a batch, metrics. Tasks derive from
/// `ExampleTask`; to add one, see CONTRIBUTING.md.
class Task : public Reader {
 public:
  /// Number of examples; 0 when the task was restored without data.
  virtual Index size(Split split) const = 0;
  using IdsSink = std::function<void(std::span<const std::int32_t>)>;
  /// Calls `sink` with all that the examples of a split consist of: equal vocabularies and equal
  /// ids are equal data.
  virtual void for_each_ids_of(Split split, const IdsSink& sink) const = 0;
  /// Example `i` of a split as the model reads it: a token that is not in the vocabulary is <unk>.
  virtual LabelledText example(Split split, Index i) const = 0;
  /// Number of tokens of a training example that the model reads, without padding.
  virtual Index tokens(Index example) const = 0;
  /// Weighted mean loss of some training examples, over their targets.
  virtual BatchLoss loss(const Network& network, std::span<const Index> examples,
                         Context& context) const = 0;
  virtual Evaluation evaluate(const Network& network, Split split,
                              const EvaluationOptions& options) const = 0;
  Evaluation evaluate(const Network& network, Split split) const {
    return evaluate(network, split, {});
  }
  /// Reads the examples from a file in the task's format. Throws UserError naming file and line.
  virtual Evaluation evaluate(const Network& network, const std::filesystem::path& file,
                              ReadCallback& callback, const EvaluationOptions& options) const = 0;
  Evaluation evaluate(const Network& network, const std::filesystem::path& file) const {
    ReadCallback silent;
    return evaluate(network, file, silent, {});
  }
  /// Metrics of an evaluation besides the loss.
  virtual std::vector<std::string> metric_names() const = 0;
  /// The most frequent labels of the training examples, in a line; empty for a task without labels.
  virtual std::string label_summary() const { return ""; }

 protected:
  explicit Task(const Config& config) : Reader(config) {}
};

/// Reads the data and builds the vocabulary: the tokens of the lists `known`, unless there are
/// none, then those of the training split. Throws UserError.
std::unique_ptr<Task> make_task(const Config& config, const Task::Vocabularies& known,
                                ReadCallback& callback);
std::unique_ptr<Task> make_task(const Config& config, ReadCallback& callback);
std::unique_ptr<Task> make_task(const Config& config);
/// Whether `make_task` makes equal tasks of the same files: no other option is one of a task.
bool have_equal_tasks(const Config& a, const Config& b);
/// For using a trained model: no data is read. Throws FileError when a token list is missing or
/// invalid.
std::unique_ptr<Task> restore_task(const Config& config, const Task::Vocabularies& vocabularies);

}  // namespace qkv
