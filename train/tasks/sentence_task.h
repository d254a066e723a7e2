#pragma once

#include "datasets/coarsewsd.h"
#include "train/tasks/task.h"

namespace qkv {

/// A task that asks one question of each sentence and has one right answer among several choices.
/// Word sense, classification and coreference differ in where the scores of the choices come from.
class SentenceTask : public Task {
 public:
  const Vocabulary& vocabulary() const override { return *vocabulary_; }
  Vocabularies vocabularies() const override;
  Index size(Split split) const override { return std::ssize(examples(split)); }
  Index tokens(Index example) const override;
  BatchLoss loss(const Network& network, std::span<const Index> examples,
                 Context& context) const override;
  Evaluation evaluate(const Network& network, Split split) const override;
  Evaluation evaluate(const Network& network, const std::filesystem::path& file) const override;
  Sentence read(std::string_view text) const override;
  Scores scores(const Network& network, const Sentence& sentence, Index index,
                Context& context) const override;
  Index outputs() const override { return std::ssize(labels_); }

 protected:
  struct Example {
    std::vector<std::int32_t> ids;
    std::int32_t index;   ///< the word that is asked about
    std::int32_t answer;  ///< the right choice
  };
  /// Examples side by side, shorter ones padded.
  struct Batch {
    Indices ids, lengths, rows, answers;
  };

  explicit SentenceTask(const Config& config) : max_length_(config.model.max_length) {}
  /// Reads the data and learns its words, labels and target words; for constructors.
  void learn(const Config& config);
  /// Takes back what `vocabularies` gave; for constructors.
  void restore(const Vocabularies& vocabularies);

  /// Whether the choices are labels, rather than the words of the sentence.
  virtual bool answers_are_labels() const { return true; }
  /// Whether the question is about one of the words, rather than the sentence.
  virtual bool asks_about_a_word() const { return true; }

  /// Reads a file in the task's format. Throws UserError naming file and line.
  virtual SentenceExamples read_file(const std::filesystem::path& file) const = 0;
  /// How the logits come from the contextual vectors y.
  virtual std::string formula() const { return "W y_i + b"; }
  /// The scores of the choices, [B, C].
  virtual Tensor logits(const Network& network, const Batch& batch, Context& context) const = 0;

  /// What a model says of a text; of each word that was asked about in training, where words are.
  std::vector<Prediction> predictions(const Network& network, std::string_view text) const;
  /// Throws UserError when the text has none of the words that were asked about in training.
  void require_targets(const Sentence& sentence, std::string_view text) const;

 private:
  const std::vector<Example>& examples(Split split) const {
    return splits_[static_cast<std::size_t>(split)];
  }
  Example encoded(const SentenceExample& example) const;
  std::vector<Example> encoded(const SentenceExamples& examples) const;
  static Batch batch(const std::vector<Example>& examples, std::span<const Index> chosen);
  Evaluation evaluate(const Network& network, const std::vector<Example>& examples) const;

  Index max_length_;
  std::optional<Vocabulary> vocabulary_;
  std::vector<std::string> labels_;   ///< choices; empty when they are the sentence's words
  std::vector<std::string> targets_;  ///< the words that were asked about in training
  std::array<std::vector<Example>, 3> splits_;
};

}  // namespace qkv
