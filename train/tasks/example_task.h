#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "train/tasks/splits.h"
#include "train/tasks/task.h"

namespace qkv {

/// Texts as ids.
struct EncodedTexts {
  Index size() const { return sentences.size(); }
  Index tokens(Index i) const { return sentences.length(i); }
  TokenCount token_count(const Vocabulary& vocabulary) const {
    return count_tokens(sentences, vocabulary);
  }
  void for_each_ids(const Task::IdsSink& sink) const {
    const std::int32_t end[] = {-1};
    for (Index i = 0; i < size(); ++i) {
      sink(sentences[i]);
      sink(end);
    }
  }

  IdLists sentences;
};

/// A task whose splits are sets of examples: batches, the loss of a batch and evaluation, written
/// once. `Examples` is a container with `size()`, `tokens(i)`, `token_count(vocabulary)` (empty
/// where unknown ones are left out) and `for_each_ids(sink)`, see `Task`; `Metrics`
/// collects what an evaluation measures besides the loss and has `void report(Evaluation&) const`.
template <class Examples, class Metrics>
class ExampleTask : public Task {
 public:
  Index size(Split split) const final { return static_cast<Index>(examples(split).size()); }
  void for_each_ids_of(Split split, const IdsSink& sink) const final {
    examples(split).for_each_ids(sink);
  }
  Index tokens(Index example) const final { return examples(Split::train).tokens(example); }
  LabelledText example(Split split, Index i) const final { return example_of(examples(split), i); }
  BatchLoss loss(const Network& network, std::span<const Index> chosen,
                 Context& context) const final {
    return batch_loss(network, examples(Split::train), chosen, context, nullptr);
  }
  std::vector<std::string> metric_names() const final {
    Evaluation none;
    metrics().report(none);
    std::vector<std::string> names;
    for (const auto& [name, value] : none.metrics) names.push_back(name);
    return names;
  }
  using Task::evaluate;
  Evaluation evaluate(const Network& network, Split split,
                      const EvaluationOptions& options) const final {
    ReadCallback silent;
    return evaluation_of(network, examples(split), options, silent);
  }
  Evaluation evaluate(const Network& network, const std::filesystem::path& file,
                      ReadCallback& callback, const EvaluationOptions& options) const final {
    return evaluation_of(network, read_examples(file, callback), options, callback);
  }

 protected:
  /// `evaluation_batch`: examples that evaluation takes at once.
  explicit ExampleTask(const Config& config, Index evaluation_batch = 64)
      : Task(config), evaluation_batch_(evaluation_batch) {}

  void set_splits(std::array<Examples, 3> splits) { splits_ = std::move(splits); }
  const Examples& examples(Split split) const { return splits_[static_cast<std::size_t>(split)]; }

  /// Reads a file in the task's format. Throws UserError naming file and line.
  virtual Examples read_examples(const std::filesystem::path& file,
                                 ReadCallback& callback) const = 0;
  /// As `Task::example`.
  virtual LabelledText example_of(const Examples& examples, Index i) const = 0;
  /// Weighted mean loss of the chosen examples, over their targets; adds them to `metrics` unless
  /// null, which it is in training.
  virtual BatchLoss batch_loss(const Network& network, const Examples& examples,
                               std::span<const Index> chosen, Context& context,
                               Metrics* metrics) const = 0;
  /// Metrics of no example yet.
  virtual Metrics metrics() const = 0;

 private:
  Evaluation evaluation_of(const Network& network, const Examples& examples,
                           const EvaluationOptions& options, ReadCallback& callback) const {
    const NoGrad no_grad;
    MemoryPool pool;
    const MemoryPool::Use use(pool);
    Context context({.hook = options.hook});
    Metrics measured = metrics();
    if constexpr (requires { measured.keep_probabilities(); })
      if (options.probabilities) measured.keep_probabilities();
    Evaluation evaluation;
    evaluation.count = static_cast<Index>(examples.size());
    double sum = 0, weight = 0;
    const Index at_once = options.one_by_one ? 1 : evaluation_batch_;
    for (Index begin = 0; begin < evaluation.count; begin += at_once) {
      callback.on_item("evaluating", static_cast<std::size_t>(begin),
                       static_cast<std::size_t>(evaluation.count));
      const Index size = std::min(at_once, evaluation.count - begin);
      const std::vector<Index> chosen = index_range(begin, begin + size);
      const BatchLoss batch =
          batch_loss(network, examples, chosen, context, options.one_by_one ? nullptr : &measured);
      sum += batch.value.item() * batch.weight;
      weight += batch.weight;
    }
    if (!options.one_by_one) evaluation.tokens = examples.token_count(vocabulary());
    evaluation.loss = weight > 0 ? sum / weight : 0;
    if (!options.one_by_one) measured.report(evaluation);
    return evaluation;
  }

  Index evaluation_batch_;
  std::array<Examples, 3> splits_;
};

/// A task whose data files have rows, each an example: how splits are read, written once.
template <class Examples, class Metrics>
class RowTask : public ExampleTask<Examples, Metrics> {
 public:
  using Vocabularies = Reader::Vocabularies;
  /// Reads the data; its training split gives the tokens and lists, in addition to those `known`.
  void learn(const Config& config, const Vocabularies& known, ReadCallback& callback) {
    Rows rows;
    const SplitRows splits =
        read_splits(config, rows, [&](const std::string& file) { add_file(file, rows, callback); });
    learn_lists(rows, splits[0], known);
    this->set_splits({encoded(rows, splits[0], callback), encoded(rows, splits[1], callback),
                      encoded(rows, splits[2], callback)});
    check_training();
  }
  /// Takes the tokens and lists of a checkpoint.
  void restore(const Vocabularies& lists) {
    this->restore_tokens(lists);
    restore_lists(lists);
  }

 protected:
  using ExampleTask<Examples, Metrics>::ExampleTask;

  /// Reads a file in the task's format. Throws UserError naming file and line.
  virtual void add_file(const std::filesystem::path& file, Rows& rows,
                        ReadCallback& callback) const = 0;
  virtual Examples encoded(const Rows& rows, std::span<const Index> chosen,
                           ReadCallback& callback) const = 0;
  /// Learns tokens and whatever else the training rows tell.
  virtual void learn_lists(const Rows& rows, std::span<const Index> training,
                           const Vocabularies& known) {
    this->learn_tokens(rows.corpus.counts(training), known);
  }
  virtual void restore_lists(const Vocabularies&) {}
  /// Throws UserError when no example can train, and prepares training.
  virtual void check_training() {}

 private:
  Examples read_examples(const std::filesystem::path& file, ReadCallback& callback) const final {
    Rows rows;
    add_file(file, rows, callback);
    return encoded(rows, index_range(0, rows.size()), callback);
  }
};

}  // namespace qkv
