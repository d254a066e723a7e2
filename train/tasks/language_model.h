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
  Index tokens(Index) const { return length_; }
  TokenCount token_count(const Vocabulary&) const { return {text_.size(), text_.unknown()}; }
  /// The tokens of window `i` and the one after it: `length` + 1, fewer at the end of the text.
  std::vector<std::int32_t> operator[](Index i) const;
  const EncodedText& text() const { return text_; }

 private:
  EncodedText text_;
  Index length_ = 1, stride_ = 1;
};

void for_each_ids(const Windows& windows, const Task::IdsSink& sink);

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
  explicit LanguageModel(const Config& config);
  /// Reads the data; the training text gives the tokens, in addition to those `known`.
  void learn(const Config& config, const Vocabularies& known, ReadCallback& callback);
  void restore(const Vocabularies& lists) { restore_tokens(lists); }

  static std::optional<Conflict> conflict(const Config& config);

  /// The target is the last token.
  Sentence read(std::string_view text) const override;

 private:
  Windows windows(const BlockedText& text, Index stride, ReadCallback& callback) const;
  Windows read_examples(const std::filesystem::path& file, ReadCallback& callback) const override;
  LabelledText example_of(const Windows& windows, Index i) const override;
  BatchLoss batch_loss(const Network& network, const Windows& windows,
                       std::span<const Index> chosen, Context& context,
                       LanguageModelMetrics* metrics) const override;
  LanguageModelMetrics metrics() const override { return {}; }
};

}  // namespace qkv
