#pragma once

#include "datasets/encoded_text.h"
#include "train/config/option_list.h"
#include "train/tasks/example_task.h"

namespace qkv {

/// Windows of an encoded text, at starts 0, `stride`, 2 `stride`, ... until one covers its end.
class Windows {
 public:
  Windows() = default;
  Windows(EncodedText text, Index length, Index stride)
      : text_(std::move(text)), length_(length), stride_(stride) {}

  Index size() const;
  Index tokens() const { return text_.size(); }
  Index unknown() const { return text_.unknown(); }
  /// The tokens of window `i` and the one after it: `length` + 1, fewer at the end of the text.
  std::vector<std::int32_t> operator[](Index i) const;
  friend void for_each_ids(const Windows& windows, const Task::IdsSink& sink) {
    windows.text_.for_each_part(sink);
  }

 private:
  EncodedText text_;
  Index length_ = 1, stride_ = 1;
};

/// Perplexity and bits a token; counts tokens instead of windows.
class LanguageModelMetrics {
 public:
  void update(Index tokens) { tokens_ += tokens; }
  void report(Evaluation& evaluation) const;

 private:
  Index tokens_ = 0;
};

/// Which token comes next? Every token of a text, by default a character, is predicted from those
/// before it, within windows of model.max_length. Training windows start at every task.stride-th
/// token, the others lie side by side.
class LanguageModel final : public ExampleTask<Windows, LanguageModelMetrics> {
 public:
  LanguageModel(const Config& config, const Vocabularies& known, ReadCallback& callback);
  LanguageModel(const Config& config, const Vocabularies& vocabularies);

  static std::optional<Conflict> conflict(const Config& config);

  Index tokens(Index) const override { return max_length(); }
  /// The target is the last token.
  Sentence read(std::string_view text) const override;
  /// The choices are the tokens that may come after token `index`.
  Scores scores(const Network& network, const Sentence& sentence, Index index,
                Context& context) const override;

 private:
  Windows windows(BlockedText text, Index stride, ReadCallback& callback) const;
  Windows read_examples(const std::filesystem::path& file, ReadCallback& callback) const override;
  LabelledText example_of(const Windows& windows, Index i) const override;
  TokenCount token_count(const Windows& windows) const override {
    return {windows.tokens(), windows.unknown()};
  }
  BatchLoss batch_loss(const Network& network, const Windows& windows,
                       std::span<const Index> chosen, Context& context,
                       LanguageModelMetrics* metrics) const override;
  LanguageModelMetrics metrics() const override { return {}; }
};

}  // namespace qkv
