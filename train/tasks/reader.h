#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "datasets/corpus.h"
#include "datasets/read_callback.h"
#include "datasets/sentences.h"
#include "datasets/tokenizer.h"
#include "datasets/tsv.h"
#include "train/config/config.h"
#include "train/tasks/network.h"
#include "train/tasks/prediction.h"

namespace qkv {

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

/// A text and its tokens.
struct ReadText {
  std::string text;
  Sentence sentence;
};

/// A word of a text, or with none the whole text, that a model is asked about.
struct AnswerTarget {
  const ReadText* text;
  std::optional<Index> index;
};

/// Stands in texts for a token that is to be predicted.
inline constexpr std::string_view mask_text = "[MASK]";

/// The logits of the answers that a model can give.
struct Scores {
  Tensor logits;                     ///< [C]
  std::vector<std::string> choices;  ///< C labels, tokens or words
  std::string formula;               ///< of the logits, from the contextual vectors y
};

/// Reads texts and answers with a trained model: tokens, labels, lines, scores and predictions.
class Reader {
 public:
  using Tokens = std::vector<std::string>;
  using Vocabularies = std::map<std::string, Tokens>;
  virtual ~Reader() = default;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Vocabulary& vocabulary() const { return tokenizer_->vocabulary(); }
  /// The labels that a model chooses from, in the order of its outputs; empty: it has none.
  const Tokens& labels() const { return list("labels"); }
  /// Width of the output layer: a logit for each label or, without labels, for each token.
  virtual Index outputs() const;
  /// The token lists that a checkpoint needs besides the parameters; `restore_task` takes them
  /// back: "tokens", the "merges" of byte-level tokens, and what the task has learned besides.
  Vocabularies vocabularies() const;

  /// Throws UserError when the text is empty or longer than the model allows.
  virtual Sentence read(std::string_view text) const;
  /// Pieces as a sentence of any length without targets.
  Sentence sentence_of(std::span<const std::string> pieces) const;
  /// A line of the task's data or, for looking at a model, fewer columns: by default `text`,
  /// `label<TAB>text` or `label<TAB>index<TAB>text`, whose label means nothing to the task. Throws
  /// UserError.
  virtual LabelledText read_line(const TsvRow& row) const;
  /// Calls `use` for the rows of a file in the task's format, as `read_line` takes them.
  virtual void for_each_line(const std::filesystem::path& file, ReadCallback& callback,
                             const UseRow& use) const;
  /// Where the first tokens of a word stand in a sentence.
  std::vector<Index> occurrences(const Sentence& sentence, const std::string& word) const;
  /// Runs a model on a sentence, recorded by `context`, and scores the answers about word `index`,
  /// of a sentence with a written text the tokens that may follow its input `index`: by default
  /// the labels or, without labels, the tokens. No scores where there are no answers to choose
  /// from.
  virtual Scores scores(const Network& network, const Sentence& sentence, Index index,
                        Context& context) const;
  /// For tasks whose model writes a text: `target` or, where that is empty, what it writes for a
  /// source. Nothing for other tasks. Throws as `read`.
  virtual std::optional<WrittenText> write(const Network& network, const Sentence& source,
                                           std::string_view target, Context& context) const;
  std::optional<WrittenText> write(const Network& network, const Sentence& source,
                                   std::string_view target) const {
    Context context;
    return write(network, source, target, context);
  }
  /// Whether there is something to choose from, whatever word of a sentence is asked about.
  virtual bool has_choices(const Sentence& sentence) const;
  /// Why `predict` has no answer about a sentence that was read from `text`, such as that it has no
  /// target word; empty: it has one.
  virtual std::string refusal(const Sentence& sentence, std::string_view text) const;
  /// Reads a text that `predictions` has an answer about. Throws UserError as `read`, and with the
  /// refusal.
  ReadText read_answerable(std::string_view text) const;
  /// As `scores`, by default of all targets in one batch.
  virtual std::vector<Scores> scores_of(const Network& network,
                                        std::span<const AnswerTarget> targets,
                                        Context& context) const;
  /// The most probable choice for each target.
  virtual std::vector<Prediction> answers(const Network& network,
                                          std::span<const AnswerTarget> targets,
                                          Context& context) const;
  /// For each text one prediction for each of its target words, or one for the text as a whole.
  virtual std::vector<std::vector<Prediction>> predictions(const Network& network,
                                                           std::span<const ReadText> texts,
                                                           Context& context) const;
  /// The predictions of one text. Throws UserError as `read_answerable`.
  std::vector<Prediction> predict(const Network& network, std::string_view text,
                                  Context& context) const;
  std::vector<Prediction> predict(const Network& network, std::string_view text) const {
    Context context;
    return predict(network, text, context);
  }

 protected:
  explicit Reader(const Config& config);

  const TaskOptions& options() const { return options_; }
  Index max_length() const { return max_length_; }  ///< of a text, in tokens
  const Cutting& cutting() const { return cutting_; }
  /// The columns of the task's files, see `datasets/sentences.h`.
  virtual std::string_view form() const { return word_sense_columns; }
  /// Constructors call one of these: learns tokens from the pieces of the training data, in
  /// addition to those of the lists `known`, or takes a checkpoint's. Those of an imported model
  /// are not learned: throws UserError where they are not known.
  void learn_tokens(const Vocabulary::Counts& pieces, const Vocabularies& known);
  void restore_tokens(const Vocabularies& vocabularies);
  void set_tokenizer(Tokenizer tokenizer);
  /// A list of what the task has learned; empty: none.
  const Tokens& list(std::string_view name) const;
  void set_list(std::string_view name, Tokens list);
  /// Ids as a text, about no word.
  LabelledText text_of_ids(std::vector<std::int32_t> ids) const;
  /// The number of tokens to leave out of a text that has too many, behind those that begin a
  /// sentence, so that token `index` stays (-1: none).
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
  /// Logits [N, C] as the scores of N targets.
  static std::vector<Scores> scores_of_rows(const Tensor& logits, const Tokens& choices,
                                            std::string_view formula);
  /// Runs a model without an output layer, where there is nothing to choose from.
  static Scores no_scores(const Network& network, const Sentence& sentence, Context& context);

 private:
  TaskOptions options_;
  Index max_length_;
  Cutting cutting_;
  std::optional<Tokenizer> tokenizer_;
  std::map<std::string, Tokens, std::less<>> lists_;
};

/// The most probable choice.
Prediction prediction_of(std::string_view text, std::optional<Index> index, Scores scores);

/// One of the lists that `Reader::vocabularies` gave. Throws FileError when it is missing or empty,
/// or one of its texts is.
const std::vector<std::string>& token_list(const Reader::Vocabularies& vocabularies,
                                           std::string_view name);
/// As `token_list`, for a list in which no text may occur twice.
const std::vector<std::string>& distinct_list(const Reader::Vocabularies& vocabularies,
                                              std::string_view name);

}  // namespace qkv
