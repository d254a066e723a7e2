#pragma once

#include "train/tasks/task.h"

namespace qkv {

/// Which character comes next? Every character of a text is foretold from those before it, within
/// windows of model.max_length.
class LanguageModel final : public Task {
 public:
  explicit LanguageModel(const Config& config);
  LanguageModel(const Config& config, const Vocabularies& vocabularies);

  Index outputs() const override { return vocabulary_->size(); }
  const Vocabulary& vocabulary() const override { return *vocabulary_; }
  Vocabularies vocabularies() const override { return {{"tokens", vocabulary_->tokens()}}; }
  /// Training examples are windows that start at any character; the other splits are cut into
  /// windows side by side.
  Index size(Split split) const override;
  Index tokens(Index) const override { return window_; }
  BatchLoss loss(const Network& network, std::span<const Index> examples,
                 Context& context) const override;
  Evaluation evaluate(const Network& network, Split split) const override;
  Evaluation evaluate(const Network& network, const std::filesystem::path& file) const override;
  Sentence read(std::string_view text) const override;
  /// The choices are the characters that may come after character `index`.
  Scores scores(const Network& network, const Sentence& sentence, Index index,
                Context& context) const override;
  /// The most probable next character.
  std::vector<Prediction> predict(const Network& network, std::string_view text) const override;

 private:
  using Tokens = std::vector<std::int32_t>;

  const Tokens& tokens(Split split) const { return splits_[static_cast<std::size_t>(split)]; }
  Tokens encoded(std::string_view text) const;
  /// Mean loss of the windows that start at `starts`; one at the end of the text is shorter.
  BatchLoss loss(const Network& network, const Tokens& tokens, std::span<const Index> starts,
                 Context& context) const;
  Evaluation evaluate(const Network& network, const Tokens& tokens) const;

  Index window_;
  std::optional<Vocabulary> vocabulary_;
  std::array<Tokens, 3> splits_;
};

}  // namespace qkv
