#pragma once

#include "datasets/corpus.h"
#include "datasets/sentences.h"
#include "train/tasks/example_task.h"
#include "train/tasks/splits.h"

namespace qkv {

/// Sentences and the questions about them, encoded.
struct EncodedSentences {
  struct Question {
    std::int32_t index;   ///< the token that is asked about
    std::int32_t answer;  ///< the right choice
  };

  Index size() const { return sentences.size(); }

  IdLists sentences;
  std::vector<Question> questions;
};

void for_each_ids(const EncodedSentences& examples, const Task::IdsSink& sink);

/// Accuracy and, where the choices are labels, the scores of each and macro F1.
class ChoiceMetrics {
 public:
  explicit ChoiceMetrics(const std::vector<std::string>& labels) : labels_(&labels) {}

  void keep_probabilities() { keeps_probabilities_ = true; }
  /// scores [B, C], answers [B]
  void update(const Tensor& scores, const Indices& answers);
  void report(Evaluation& evaluation) const;

 private:
  void report_labels(Evaluation& evaluation) const;

  const std::vector<std::string>* labels_;  ///< empty when the choices are words
  /// How often a label is right and another is predicted, by both.
  std::map<std::pair<std::int32_t, std::int32_t>, Index> counts_;
  bool keeps_probabilities_ = false;
  std::vector<double> probabilities_;
  std::vector<std::int32_t> answers_;
  Index right_ = 0;
};

/// A task that asks one question of each sentence and has one right answer among several choices.
/// A kind of it says how its lines are parsed and computes the logits of the choices.
class SentenceTask : public ExampleTask<EncodedSentences, ChoiceMetrics> {
 public:
  Index outputs() const override { return std::ssize(labels_); }
  Vocabularies vocabularies() const final;
  Index tokens(Index example) const final;
  Sentence read(std::string_view text) const final;
  LabelledText read_line(const TsvRow& row) const final;
  Scores scores(const Network& network, const Sentence& sentence, Index index,
                Context& context) const final;
  std::string label_summary() const final;
  std::vector<Prediction> predict(const Network& network, std::string_view text) const final;

 protected:
  /// What is asked, and the lines that ask it.
  struct Question {
    std::string_view columns;  ///< "label<TAB>index<TAB>sentence"
    SentenceExample (*parse)(const TsvRow&, const Cutting&);
    bool has_labels;      ///< the choices are labels, rather than the words of the sentence
    bool about_a_word;    ///< rather than the sentence
    std::string formula;  ///< of the logits, from the contextual vectors y
  };
  /// Examples side by side, shorter ones padded.
  struct Batch {
    Indices ids;      ///< [B, T]
    Indices lengths;  ///< [B]
    Indices indices;  ///< [B], of the words that are asked about
    Indices answers;  ///< [B]
  };

  /// Reads the data; its training split gives the vocabulary, labels and target words.
  SentenceTask(const Config& config, Question question, const Vocabularies& known,
               ReadCallback& callback);
  SentenceTask(const Config& config, const Vocabularies& vocabularies, Question question);

  /// The scores of the choices, [B, C].
  virtual Tensor logits(const Network& network, const Batch& batch, Context& context) const = 0;

 private:
  using Examples = EncodedSentences;
  /// What regularizes training.
  struct Noise {
    std::vector<double> unlisted;  ///< probability that a token is read as if the vocabulary did
                                   ///< not list it, by id; empty: 0
    CrossEntropyOptions loss;
  };
  struct Rows;     ///< that were read before there is a vocabulary
  struct Encoded;  ///< one of them

  Noise noise_of(const TaskOptions& options, const Examples& train) const;
  /// The ids of a batch with some words replaced by what they would be if the vocabulary did not
  /// list them, but not those that are asked about.
  Indices with_word_dropout(const Batch& batch, const Random& random) const;
  SplitRows read_splits_of(const Config& config, Rows& rows, ReadCallback& callback) const;
  static void hold_out_fold(const Config& config, const Rows& rows, SplitRows& splits);
  static void keep_labels_in_training(const Rows& rows, const TaskOptions& task, SplitRows& splits);
  void add_row(const TsvRow& row, Rows& rows) const;
  void add_file(const std::filesystem::path& file, Rows& rows, ReadCallback& callback) const;
  Index place_of_word(const std::vector<std::string>& pieces) const;
  std::vector<std::string> target_words(const Rows& rows, std::span<const Index> chosen) const;
  /// `known`: the index of each label of the rows.
  Encoded encoded(const Rows& rows, const CorpusEncoder& encoder, Index row,
                  std::span<const Index> known) const;
  Examples encoded(const Rows& rows, std::span<const Index> chosen, ReadCallback& callback) const;
  void add_targets(Sentence& sentence) const;
  static Batch collated(const Examples& examples, std::span<const Index> chosen);

  std::string_view form() const final {
    return word_.empty() ? question_.columns : labelled_columns;
  }
  Examples read_examples(const std::filesystem::path& file, ReadCallback& callback) const final;
  LabelledText example_of(const Examples& examples, Index i) const final;
  TokenCount token_count(const Examples& examples) const final {
    return token_count_of(examples.sentences);
  }
  BatchLoss batch_loss(const Network& network, const Examples& examples,
                       std::span<const Index> chosen, Context& context,
                       ChoiceMetrics* metrics) const final;
  ChoiceMetrics metrics() const final { return ChoiceMetrics(labels_); }

  Question question_;
  Noise noise_;
  std::string word_;  ///< that is asked about in files without its index
  UnknownLabels unknown_labels_;
  std::vector<std::string> labels_;   ///< choices; empty when they are the sentence's words
  std::vector<std::string> targets_;  ///< the words that were asked about in training
};

}  // namespace qkv
