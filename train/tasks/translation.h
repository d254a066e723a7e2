#pragma once

#include "datasets/sentences.h"
#include "train/tasks/task.h"

namespace qkv {

/// What does a text say in another language? An encoder reads the source, a decoder writes the
/// target word by word; both share one vocabulary. Every word of a target is learned from the words
/// before it.
class Translation final : public Task {
 public:
  explicit Translation(const Config& config);
  Translation(const Config& config, const Vocabularies& vocabularies);

  Index outputs() const override { return vocabulary_->size(); }
  const Vocabulary& vocabulary() const override { return *vocabulary_; }
  Vocabularies vocabularies() const override { return {{"tokens", vocabulary_->tokens()}}; }
  Index size(Split split) const override { return std::ssize(examples(split)); }
  Index tokens(Index example) const override;
  BatchLoss loss(const Network& network, std::span<const Index> examples,
                 Context& context) const override;
  /// The share of outputs that equal their targets ("exact_match") and ChrF ("chrf"), each word of
  /// an output being the most probable one.
  Evaluation evaluate(const Network& network, Split split) const override;
  Evaluation evaluate(const Network& network, const std::filesystem::path& file) const override;
  Sentence read(std::string_view text) const override;
  std::vector<Prediction> predict(const Network& network, std::string_view text) const override;

 private:
  using Ids = std::vector<std::int32_t>;
  struct Example {
    Ids source, target;
    std::string reference;  ///< target words as text
  };
  /// What a model writes for a source.
  struct Output {
    Ids ids;
    double probability = 1;  ///< product of its words'
  };

  const std::vector<Example>& examples(Split split) const {
    return splits_[static_cast<std::size_t>(split)];
  }
  Ids encoded(const std::vector<std::string>& words) const;
  std::vector<Example> encoded(const std::vector<SentencePair>& pairs) const;
  BatchLoss loss(const Network& network, const std::vector<Example>& examples,
                 std::span<const Index> chosen, Context& context) const;
  Evaluation evaluate(const Network& network, const std::vector<Example>& examples) const;
  std::vector<Output> outputs(const Network& network, std::span<const Ids> sources) const;
  std::string text_of(const Ids& ids) const;

  Index max_length_;
  std::optional<Vocabulary> vocabulary_;
  std::array<std::vector<Example>, 3> splits_;
};

}  // namespace qkv
