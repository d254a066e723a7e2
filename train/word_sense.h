#pragma once

#include "datasets/word_sense.h"
#include "train/task.h"

namespace qkv {

/// Which sense does a word have in its sentence? The word's contextual vector goes through the
/// output layer.
class WordSense final : public Task {
 public:
  explicit WordSense(const Config& config);
  WordSense(const Config& config, const Vocabularies& vocabularies);

  Index outputs() const override { return std::ssize(labels_); }
  const Vocabulary& vocabulary() const override { return *vocabulary_; }
  Vocabularies vocabularies() const override;
  Index size(Split split) const override { return std::ssize(examples(split)); }
  BatchLoss loss(const Network& network, std::span<const Index> examples,
                 Context& context) const override;
  Evaluation evaluate(const Network& network, Split split) const override;
  Evaluation evaluate(const Network& network, const std::filesystem::path& file) const override;
  Sentence read(std::string_view text) const override;
  std::vector<Prediction> predict(const Network& network, std::string_view text) const override;

 private:
  struct Example {
    std::vector<std::int32_t> ids;
    std::int32_t index;
    std::int32_t label;
  };
  /// Examples side by side, shorter ones padded.
  struct Batch {
    Indices ids, lengths, rows, labels;
  };

  const std::vector<Example>& examples(Split split) const {
    return splits_[static_cast<std::size_t>(split)];
  }
  Example encoded(const WordSenseExample& example) const;
  /// `source` is where the examples come from, for errors.
  std::vector<Example> encoded(const std::vector<WordSenseExample>& examples,
                               const std::string& source) const;
  Batch batch(std::span<const Example* const> examples) const;
  Tensor logits(const Network& network, const Batch& batch, Context& context) const;
  Evaluation evaluate(const Network& network, std::span<const Example> examples) const;

  Index max_length_;
  std::optional<Vocabulary> vocabulary_;
  std::vector<std::string> labels_;
  std::vector<std::string> targets_;  ///< the words whose sense the training data asks for
  std::array<std::vector<Example>, 3> splits_;
};

}  // namespace qkv
