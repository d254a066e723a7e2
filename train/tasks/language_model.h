#pragma once

#include "train/config/option_list.h"
#include "train/tasks/example_task.h"

namespace qkv {

/// Windows of an encoded text, at starts 0, `stride`, 2 `stride`, ... until one covers its end.
class Windows {
 public:
  Windows() = default;
  Windows(std::vector<std::int32_t> tokens, Index length, Index stride)
      : tokens_(std::move(tokens)), length_(length), stride_(stride) {}

  Index size() const;
  /// The tokens of window `i` and the one after it: `length` + 1, fewer at the end of the text.
  std::span<const std::int32_t> operator[](Index i) const;
  friend void for_each_ids(const Windows& windows, const Task::IdsSink& sink) {
    sink(windows.tokens_);
  }

 private:
  std::vector<std::int32_t> tokens_;
  Index length_ = 1, stride_ = 1;
};

/// Perplexity and bits a token; counts characters instead of windows.
class LanguageModelMetrics {
 public:
  void update(Index characters) { characters_ += characters; }
  void report(Evaluation& evaluation) const;

 private:
  Index characters_ = 0;
};

/// Which character comes next? Every character of a text is predicted from those before it, within
/// windows of model.max_length. Training windows start at any character, the others lie side by
/// side.
class LanguageModel final : public ExampleTask<Windows, LanguageModelMetrics> {
 public:
  explicit LanguageModel(const Config& config);
  LanguageModel(const Config& config, const Vocabularies& vocabularies);

  static std::optional<Conflict> conflict(const Config& config);

  Index tokens(Index) const override { return max_length(); }
  /// Its tokens are characters; the target is the last one.
  Sentence read(std::string_view text) const override;
  /// The choices are the characters that may come after character `index`.
  Scores scores(const Network& network, const Sentence& sentence, Index index,
                Context& context) const override;

 private:
  std::vector<std::int32_t> encoded(std::string_view text) const;
  Windows read_examples(const std::filesystem::path& file) const override;
  BatchLoss batch_loss(const Network& network, const Windows& windows,
                       std::span<const Index> chosen, Context& context,
                       LanguageModelMetrics* metrics) const override;
  LanguageModelMetrics metrics() const override { return {}; }
};

}  // namespace qkv
