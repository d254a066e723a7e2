#pragma once

#include "train/tasks/choice_metrics.h"
#include "train/tasks/example_task.h"

namespace qkv {

/// Sentences and the questions about them, encoded.
struct EncodedSentences : EncodedTexts {
  struct Question {
    std::int32_t index;   ///< the token that is asked about
    std::int32_t answer;  ///< the right choice
  };

  void for_each_ids(const Task::IdsSink& sink) const {
    for (Index i = 0; i < size(); ++i) {
      const auto [index, answer] = questions[static_cast<std::size_t>(i)];
      const std::int32_t rest[] = {index, answer, -1};  // -1 ends an example
      sink(sentences[i]);
      sink(rest);
    }
  }

  std::vector<Question> questions;
};

/// The refusal of a pronoun that stands alone.
inline constexpr auto no_other_word =
    "the sentence has no other word that the pronoun could refer to";

/// A task that asks one question of each sentence and has one right answer among several choices.
class SentenceTask final : public RowTask<EncodedSentences, ChoiceMetrics> {
 public:
  /// Examples side by side, shorter ones padded.
  struct Batch {
    Indices ids;      ///< [B, T]
    Indices lengths;  ///< [B]
    Indices indices;  ///< [B], of the words that are asked about
    Indices answers;  ///< [B]
  };
  /// A question, the lines that ask it, and how a model answers.
  struct Question {
    std::string_view columns;  ///< "label<TAB>index<TAB>sentence"
    SentenceExample (*parse)(const TsvRow&, const Cutting&);
    bool has_labels;           ///< the choices are labels, rather than the words of the sentence
    bool about_a_word;         ///< rather than the sentence
    std::string_view formula;  ///< of the logits, from the contextual vectors y
    /// The scores of the choices, [B, C].
    Tensor (*logits)(const Network& network, const Batch& batch, Context& context);
  };

  /// The question must outlive the task.
  SentenceTask(const Config& config, const Question& question);

  Index outputs() const override;
  Sentence read(std::string_view text) const override;
  LabelledText read_line(const TsvRow& row) const override;
  Scores scores(const Network& network, const Sentence& sentence, Index index,
                Context& context) const override;
  std::vector<Scores> scores_of(const Network& network, std::span<const AnswerTarget> targets,
                                Context& context) const override;
  std::string label_summary() const override;
  bool has_choices(const Sentence& sentence) const override;
  std::string refusal(const Sentence& sentence, std::string_view text) const override;

 private:
  using Examples = EncodedSentences;
  /// Regularization of training.
  struct Noise {
    std::vector<double> unlisted;  ///< probability that a token is read as if the vocabulary did
                                   ///< not list it, by id; empty: 0
    CrossEntropyOptions loss;
  };
  struct Encoded;  ///< a row for the model

  std::string_view form() const override {
    return word_.empty() ? question_.columns : labelled_columns;
  }
  void add_row(const TsvRow& row, Rows& rows) const;
  void add_file(const std::filesystem::path& file, Rows& rows,
                ReadCallback& callback) const override;
  Index place_of_word(const std::vector<std::string>& pieces) const;
  void learn_lists(const Rows& rows, std::span<const Index> training,
                   const Vocabularies& known) override;
  void restore_lists(const Vocabularies& lists) override;
  /// `known`: the index of each label of the rows.
  Encoded encoded(const Rows& rows, const CorpusEncoder& encoder, Index row,
                  std::span<const Index> known) const;
  Examples encoded(const Rows& rows, std::span<const Index> chosen,
                   ReadCallback& callback) const override;
  void check_training() override;
  void add_targets(Sentence& sentence) const;
  LabelledText example_of(const Examples& examples, Index i) const override;
  static Batch collated(const Examples& examples, std::span<const Index> chosen);
  /// The ids of a batch with some words replaced by what they would be if the vocabulary did not
  /// list them, but not those that are asked about.
  Indices with_word_dropout(const Batch& batch, const Random& random) const;
  BatchLoss batch_loss(const Network& network, const Examples& examples,
                       std::span<const Index> chosen, Context& context,
                       ChoiceMetrics* metrics) const override;
  ChoiceMetrics metrics() const override { return ChoiceMetrics(labels()); }

  const Question& question_;
  Index width_;
  Noise noise_;
  std::string word_;  ///< that is asked about in files without its index
};

}  // namespace qkv
