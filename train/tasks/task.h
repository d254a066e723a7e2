#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "datasets/vocabulary.h"
#include "train/config/config.h"
#include "train/tasks/network.h"

namespace qkv {

enum class Split { train, valid, test };
std::string_view to_string(Split split);

/// How well a model does on a set of examples.
struct Evaluation {
  Index count = 0;
  double loss = 0;  ///< mean over all targets, as in training
  /// What the task measures, such as {"accuracy", 0.98}; the first is the one that matters most.
  std::vector<std::pair<std::string, double>> metrics;
  std::map<std::string, double> recall;  ///< share of right answers among each label's examples
  double score = 0;  ///< the higher, the better the checkpoint; equal ones are told apart by loss

  std::optional<double> find(std::string_view name) const;
  /// Throws ValueError when there is no such metric.
  double metric(std::string_view name) const;
  /// The metric that matters most as "accuracy 0.9800".
  std::string headline() const;
};

/// What a model says of a text.
struct Prediction {
  std::string text;
  std::optional<Index> index;  ///< the word it is about, counted from 0; none: the whole text
  std::string label;           ///< a class, a word, or the text that the model wrote
  double probability;
  bool is_output = false;                 ///< whether the label is a text that the model wrote
  std::vector<std::string> choices = {};  ///< of which the label is one; none: it wrote
  std::vector<double> logits = {}, probabilities = {};  ///< of each choice
};

/// A text as the model reads it.
struct Sentence {
  std::vector<std::string> words;
  std::vector<std::int32_t> ids;
  std::vector<Index> targets;  ///< the words that the task asks about
};

/// The scores of the answers that a model can give.
struct Scores {
  Tensor logits;                     ///< [C]
  std::vector<std::string> choices;  ///< C labels, tokens or words
  std::string formula;               ///< of the logits, from the contextual vectors y
};

/// The loss of a batch.
struct BatchLoss {
  Tensor value;   ///< scalar
  Index targets;  ///< of which the loss is the mean
};

/// One kind of problem: its data, output layer, loss and metric. To add one, see CONTRIBUTING.md.
class Task {
 public:
  using Vocabularies = std::map<std::string, std::vector<std::string>>;
  virtual ~Task() = default;

  /// Number of classes that the output layer tells apart.
  virtual Index outputs() const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
  /// The token lists without which the parameters mean nothing; `restore_task` takes them back.
  virtual Vocabularies vocabularies() const = 0;

  /// Number of examples; 0 when the task was restored without data.
  virtual Index size(Split split) const = 0;
  /// How many tokens the model reads of a training example, without padding.
  virtual Index tokens(Index example) const = 0;
  /// Mean loss of some training examples, over their targets.
  virtual BatchLoss loss(const Network& network, std::span<const Index> examples,
                         Context& context) const = 0;
  virtual Evaluation evaluate(const Network& network, Split split) const = 0;
  /// The same for examples from a file in the task's format. Throws UserError naming file and line.
  virtual Evaluation evaluate(const Network& network, const std::filesystem::path& file) const = 0;

  /// Throws UserError when the text is empty or longer than the model allows.
  virtual Sentence read(std::string_view text) const = 0;
  /// Runs a model on a sentence, watched by `context`, and scores the answers about word `index`; a
  /// task without answers to choose from gives no scores.
  virtual Scores scores(const Network& network, const Sentence& sentence, Index index,
                        Context& context) const;
  /// One prediction for each target word of a text. Throws UserError when there is none.
  virtual std::vector<Prediction> predict(const Network& network, std::string_view text) const = 0;

 protected:
  using Measure = std::function<BatchLoss(std::span<const Index> examples, Context& context)>;
  /// The one evaluation loop: the mean loss over all targets of examples 0 to `count` - 1, of which
  /// `measure` gets `batch` at a time; it also collects what the task's metrics need. 0 without
  /// targets.
  static double mean_loss(Index count, Index batch, const Measure& measure);
};

/// What a model says when these are the scores: the most probable choice.
Prediction prediction_of(std::string_view text, std::optional<Index> index, const Scores& scores);

/// The words of a text, without targets. Throws UserError when there is none or more than
/// `max_length`.
Sentence read_sentence(std::string_view text, const Vocabulary& vocabulary, Index max_length);

/// One of the lists that `Task::vocabularies` gave. Throws FileError when it is missing or empty.
const std::vector<std::string>& token_list(const Task::Vocabularies& vocabularies,
                                           const std::string& name);

/// Reads the data and builds the vocabulary from its training split. Throws UserError.
std::unique_ptr<Task> make_task(const Config& config);
/// For using a trained model: no data is read. Throws FileError when a token list is missing or
/// invalid.
std::unique_ptr<Task> restore_task(const Config& config, const Task::Vocabularies& vocabularies);

}  // namespace qkv
