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
#include "datasets/corpus.h"
#include "datasets/read_callback.h"
#include "datasets/sentences.h"
#include "datasets/tokenizer.h"
#include "datasets/tsv.h"
#include "train/config/config.h"
#include "train/tasks/network.h"

namespace qkv {

enum class Split { train, valid, test };
std::string_view to_string(Split split);

/// The most labels that are compared with each other: a matrix of more is no longer read, and its
/// memory grows with the square of their number.
inline constexpr std::size_t most_compared_labels = 200;

/// How well a label is predicted. A quotient by 0 is 0, as in scikit-learn.
struct LabelScores {
  std::string label;
  Index count = 0;       ///< examples with the label
  double precision = 0;  ///< fraction of its predictions that are right
  double recall = 0;     ///< fraction of its examples that are right
  double f1 = 0;         ///< 2 precision recall / (precision + recall)
  /// How often its examples are given each label; empty where these are more than
  /// `most_compared_labels`.
  std::vector<Index> predicted = {};
};

/// How many tokens there are, and how many of them are <unk>.
struct TokenCount {
  Index all = 0, unknown = 0;
};

/// How well a model does on a set of examples.
struct Evaluation {
  Index count = 0;
  double loss = 0;         ///< mean over all targets, as in training
  TokenCount tokens = {};  ///< that the model read, where counted
  /// What the task measures, such as {"accuracy", 0.98}; the first is the headline metric.
  std::vector<std::pair<std::string, double>> metrics;
  std::vector<LabelScores> labels;  ///< in alphabetical order; `predicted` is the confusion matrix
  double score = 0;  ///< the higher, the better the checkpoint; ties are broken by the loss
  /// Where the choices are labels, and the options ask for it: of each example the probabilities of
  /// all of them, one example after the other, and the right label's number.
  std::vector<double> probabilities;
  std::vector<std::int32_t> answers;

  std::optional<double> find(std::string_view name) const;
  /// Throws ValueError when there is no such metric.
  double metric(std::string_view name) const;
  /// The higher, the better by "loss" or a metric; by "" the `score`. Throws ValueError when there
  /// is no such metric.
  double score_by(std::string_view name) const;
  /// The headline metric as "accuracy 0.9800".
  std::string headline() const;
};

/// What a model predicts for a text.
struct Prediction {
  std::string text;
  std::optional<Index> index;  ///< the word it is about, counted from 0; none: the whole text
  std::string label;           ///< a class, a word, or the generated text
  double probability;
  bool is_output = false;                 ///< whether the label is a generated text
  std::vector<std::string> choices = {};  ///< of which the label is one; none for generated text
  std::vector<double> logits = {}, probabilities = {};  ///< of each choice
};

/// A text that a model writes token by token.
struct WrittenText {
  std::vector<std::string> inputs;   ///< what the decoder reads: "<bos>", then all but the last
  std::vector<std::string> outputs;  ///< what follows each of them: the tokens, then "<eos>"
  std::vector<std::int32_t> input_ids, output_ids;
};

/// A tokenized text.
struct Sentence {
  std::vector<std::string> words = {};
  std::vector<std::int32_t> ids = {};
  std::vector<Index> targets = {};  ///< the words that the task asks about
  /// Scores are about its tokens; the sentence is the source.
  std::optional<WrittenText> written = {};
};

/// A line of a data file, tokenized, with the answer that it gives.
struct LabelledText {
  std::string label = {};  ///< empty when the line has none
  std::string text = {};
  Sentence sentence = {};
  Index index = -1;       ///< the word that the line is about, else the first target, else -1
  Index answer = -1;      ///< the right one of `Scores::choices`; -1: not given or unknown
  Index antecedent = -1;  ///< the word that is the answer, where answers are words
};

/// The logits of the answers that a model can give.
struct Scores {
  Tensor logits;                     ///< [C]
  std::vector<std::string> choices;  ///< C labels, tokens or words
  std::string formula;               ///< of the logits, from the contextual vectors y
};

/// The loss of a batch.
struct BatchLoss {
  Tensor value;   ///< scalar: the mean over the targets, each by its weight
  Index targets;  ///< their number
  double weight = static_cast<double>(targets);  ///< the sum of their weights
};

/// How an evaluation runs.
struct EvaluationOptions {
  const Hook* hook = nullptr;  ///< replaces activations of every forward pass
  bool one_by_one = false;     ///< each example alone, without padding, and the loss alone
  bool probabilities = false;  ///< keeps those of all labels, as an ensemble needs them
};

/// One kind of problem: its data, output layer, loss and metrics. Tasks derive from `ExampleTask`;
/// to add one, see CONTRIBUTING.md.
class Task {
 public:
  using Tokens = std::vector<std::string>;
  using Vocabularies = std::map<std::string, Tokens>;
  virtual ~Task() = default;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Vocabulary& vocabulary() const { return tokenizer_->vocabulary(); }
  /// Width of the output layer; by default a logit for each token.
  virtual Index outputs() const { return vocabulary().size(); }
  /// The token lists that a checkpoint needs besides the parameters; `restore_task` takes them
  /// back. By default the vocabulary's "tokens", and the "merges" of byte-level tokens.
  virtual Vocabularies vocabularies() const;

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
  /// What an evaluation measures besides the loss.
  virtual std::vector<std::string> metric_names() const = 0;
  /// The same for examples from a file in the task's format. Throws UserError naming file and line.
  virtual Evaluation evaluate(const Network& network, const std::filesystem::path& file,
                              ReadCallback& callback, const EvaluationOptions& options) const = 0;
  Evaluation evaluate(const Network& network, const std::filesystem::path& file) const;

  /// Throws UserError when the text is empty or longer than the model allows.
  virtual Sentence read(std::string_view text) const;
  /// Pieces as a sentence of any length without targets.
  Sentence sentence_of(std::span<const std::string> pieces) const;
  /// A line of the task's data or, for looking at a model, fewer columns: by default `text`,
  /// `label<TAB>text` or `label<TAB>index<TAB>text`, whose label means nothing to the task. Throws
  /// UserError.
  virtual LabelledText read_line(const TsvRow& row) const;
  /// The most frequent labels of the training examples, in a line; empty for a task without labels.
  virtual std::string label_summary() const { return ""; }
  /// Calls `use` for the rows of a file in the task's format, as `read_line` takes them.
  virtual void for_each_line(const std::filesystem::path& file, ReadCallback& callback,
                             const UseRow& use) const;
  /// Where the first tokens of a word stand in a sentence.
  std::vector<Index> occurrences(const Sentence& sentence, const std::string& word) const;
  /// Runs a model on a sentence, recorded by `context`, and scores the answers about word `index`,
  /// of a sentence with a written text the tokens that may follow its input `index`; no scores
  /// where there are no answers to choose from.
  virtual Scores scores(const Network& network, const Sentence& sentence, Index index,
                        Context& context) const;
  /// For tasks whose model writes a text: `target` or, where that is empty, what it writes for a
  /// source. Nothing for other tasks. Throws as `read`.
  virtual std::optional<WrittenText> write(const Network& network, const Sentence& source,
                                           std::string_view target) const;
  /// One prediction for each target word of a text, or for the text as a whole. Throws UserError
  /// when the text has no target word and the task needs one.
  virtual std::vector<Prediction> predict(const Network& network, std::string_view text) const;

 protected:
  explicit Task(const Config& config);

  Index max_length() const { return max_length_; }  ///< of a text, in tokens
  /// Whether longer ones are cut to it.
  bool truncates() const { return truncates_; }
  const Cutting& cutting() const { return cutting_; }
  /// The columns of the task's files, see `datasets/sentences.h`.
  virtual std::string_view form() const { return word_sense_columns; }
  /// Those that the options name.
  const std::vector<std::string>& columns() const { return columns_; }
  /// Constructors call one of these: learns tokens from the pieces of the training data, in
  /// addition to those of the lists `known`, or takes a checkpoint's. Those of an imported model
  /// are not learned: throws UserError where they are not known.
  void learn_tokens(const Vocabulary::Counts& pieces, const Vocabularies& known);
  void restore_tokens(const Vocabularies& vocabularies);
  void set_tokenizer(Tokenizer tokenizer);
  std::shared_ptr<const Tokenizer> shared_tokenizer() const { return tokenizer_; }

  TokenCount token_count_of(const IdLists& lists) const;
  /// Ids as a text, about no word.
  LabelledText text_of_ids(std::vector<std::int32_t> ids) const;
  /// Of a text of too many tokens: how many to leave out behind those that begin a sentence, so
  /// that token `index` stays (-1: none).
  Index crop_begin(Index length, Index index) const;
  /// Leaves `max_length` tokens: those that begin and end a sentence, and of the others the ones
  /// behind the first `begin`.
  template <class T>
  void crop(std::vector<T>& tokens, Index begin = 0) const {
    const Index ends = tokenizer().special_tokens();
    tokens.erase(tokens.begin() + ends, tokens.begin() + ends + begin);
    tokens.erase(tokens.begin() + max_length() - ends, tokens.end() - ends);
  }
  /// A sentence that the model can read, cut where the options say so. Throws UserError as `read`.
  Sentence fitted(Sentence sentence) const;
  /// What an evaluation draws for a text: a function of these ids alone, so that its loss depends
  /// neither on the batches nor on the order of the lines.
  static Random drawn_for(std::span<const std::int32_t> ids);
  /// The logits of `choices`, which the output layer gives for the contextual vector of one token.
  static Scores scores_of_token(const Network& network, const Sentence& sentence, Index index,
                                Context& context, std::vector<std::string> choices);
  /// The most probable choice for each target word of a sentence or, without targets, for the
  /// whole.
  std::vector<Prediction> answers(const Network& network, std::string_view text,
                                  const Sentence& sentence) const;

 private:
  Index max_length_;
  LearnOptions learn_;
  bool truncates_;
  Cutting cutting_;
  std::vector<std::string> columns_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

/// The most probable choice.
Prediction prediction_of(std::string_view text, std::optional<Index> index, const Scores& scores);

/// One of the lists that `Task::vocabularies` gave. Throws FileError when it is missing or empty,
/// or one of its texts is.
const std::vector<std::string>& token_list(const Task::Vocabularies& vocabularies,
                                           std::string_view name);
/// The same for a list of which no text may occur twice.
const std::vector<std::string>& distinct_list(const Task::Vocabularies& vocabularies,
                                              std::string_view name);

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
