#include <algorithm>
#include <cmath>
#include <numbers>

#include "datasets/batch.h"
#include "datasets/encoded_text.h"
#include "train/tasks/example_task.h"
#include "train/tasks/kinds.h"

namespace qkv {
namespace {

/// Windows that evaluation takes at once.
Index windows_at_once(Index window) {
  constexpr Index tokens = 1024;
  return std::max<Index>(tokens / window, 1);
}

BlockedText text_of(const std::string& file, ReadCallback& callback) {
  return file.empty() ? BlockedText() : BlockedText(file, callback);
}

/// Removes part `fold` of `folds` equal ones from a text and returns it.
BlockedText fold_of(BlockedText& text, Index fold, Index folds) {
  const Index all = text.characters(), begin = all * (fold - 1) / folds, end = all * fold / folds;
  const BlockedText after = text.cut_off(all - end);
  BlockedText part = text.cut_off(end - begin);
  text += after;
  return part;
}

/// Train, valid and test text: each from its file; of `task.data`, fractions at the end become test
/// and valid where these have no file, and the rest train. A fold of the training text takes the
/// place of the test text.
std::array<BlockedText, 3> splits_of(const TaskOptions& task, ReadCallback& callback) {
  const bool is_split = !task.data.empty();
  BlockedText train = text_of(is_split ? task.data : task.train, callback);
  const auto part = [&, all = static_cast<double>(train.characters())](const std::string& file,
                                                                       double fraction) {
    const bool is_drawn = is_split && file.empty();
    return is_drawn ? train.cut_off(std::llround(all * fraction)) : text_of(file, callback);
  };
  BlockedText valid = part(task.valid, task.valid_share);
  BlockedText test = part(task.test, task.test_share);
  if (task.folds > 0) test = fold_of(train, task.fold, task.folds);
  return {std::move(train), std::move(valid), std::move(test)};
}

/// Whether a token's contextual vector depends on later tokens.
bool sees_ahead(const ModelOptions& model) {
  if (model.kind == ModelKind::recurrent) return model.bidirectional;
  return model.kind != ModelKind::decoder && model.kind != ModelKind::static_embedding;
}

/// Windows of an encoded text, at starts 0, `stride`, 2 `stride`, ... until one covers its end.
class Windows {
 public:
  Windows() = default;
  Windows(EncodedText text, Index length, Index stride)
      : text_(std::move(text)), length_(length), stride_(stride) {}

  Index size() const {
    const Index next = text_.size() - 1;  // the first token is not predicted
    if (next <= 0) return 0;
    return 1 + (std::max<Index>(next - length_, 0) + stride_ - 1) / stride_;
  }
  Index tokens(Index) const { return length_; }
  TokenCount token_count(const Vocabulary&) const { return {text_.size(), text_.unknown()}; }
  /// The tokens of window `i` and the one after it: `length` + 1, fewer at the end of the text.
  std::vector<std::int32_t> operator[](Index i) const {
    const Index start = i * stride_;
    return text_.ids(start, std::min(start + length_ + 1, text_.size()));
  }
  void for_each_ids(const Task::IdsSink& sink) const {
    constexpr Index at_once = 4096;
    for (Index begin = 0; begin < text_.size(); begin += at_once)
      sink(text_.ids(begin, std::min(begin + at_once, text_.size())));
  }
  const EncodedText& text() const { return text_; }

 private:
  EncodedText text_;
  Index length_ = 1, stride_ = 1;
};

/// Perplexity and bits a token; counts tokens instead of windows.
class LanguageModelMetrics {
 public:
  void update(Index tokens) { tokens_ += tokens; }
  void report(Evaluation& evaluation) const {
    evaluation.count = tokens_;
    evaluation.metrics = {{"perplexity", std::exp(evaluation.loss)},
                          {"bits_per_token", evaluation.loss / std::numbers::ln2}};
    evaluation.score = -evaluation.loss;
  }

 private:
  Index tokens_ = 0;
};

/// Which token comes next? Every token of a text, by default a character, is predicted from those
/// before it, within windows of model.max_length. Training windows start at every task.stride-th
/// token, the others lie side by side.
class LanguageModel final : public ExampleTask<Windows, LanguageModelMetrics> {
 public:
  explicit LanguageModel(const Config& config)
      : ExampleTask(config, windows_at_once(config.model.max_length)) {}

  /// Reads the data; the training text gives the tokens, in addition to those `known`.
  void learn(const Config& config, const Vocabularies& known, ReadCallback& callback) {
    const auto texts = splits_of(config.task, callback);
    learn_tokens(texts[0].counts(cutting(), callback), known);
    Windows train = windows(texts[0], config.task.stride, callback);
    require<UserError>(train.text().size() > max_length(),
                       "the training text has {} tokens; model.max_length = {} needs one more than "
                       "that at least",
                       train.text().size(), max_length());
    set_splits({std::move(train), windows(texts[1], max_length(), callback),
                windows(texts[2], max_length(), callback)});
  }

  void restore(const Vocabularies& lists) { restore_tokens(lists); }

  /// The target is the last token.
  Sentence read(std::string_view text) const override {
    Sentence sentence = sentence_of(pieces_of(text, cutting()));
    require<UserError>(!sentence.words.empty(), "the text is empty; give at least one token");
    require<UserError>(
        std::ssize(sentence.words) <= max_length(),
        "the text has {} tokens, more than the model's longest, model.max_length = {}",
        sentence.words.size(), max_length());
    sentence.targets = {std::ssize(sentence.words) - 1};
    return sentence;
  }

 private:
  Windows windows(const BlockedText& text, Index stride, ReadCallback& callback) const {
    EncodedText encoded(text, tokenizer(), callback);
    if (encoded.unknown() > 0)
      callback.on_message(fmt::format("{}: {} of {} tokens are not in the vocabulary", text.name(),
                                      encoded.unknown(), encoded.size()));
    return {std::move(encoded), max_length(), stride};
  }

  Windows read_examples(const std::filesystem::path& file, ReadCallback& callback) const override {
    return windows(BlockedText(file, callback), max_length(), callback);
  }
  LabelledText example_of(const Windows& windows, Index i) const override {
    std::vector<std::int32_t> ids = windows[i];
    ids.pop_back();  // the token after the window
    return text_of_ids(std::move(ids));
  }
  BatchLoss batch_loss(const Network& network, const Windows& windows,
                       std::span<const Index> chosen, Context& context,
                       LanguageModelMetrics* metrics) const override {
    std::vector<std::vector<std::int32_t>> read;
    std::vector<std::span<const std::int32_t>> ids, next;
    read.reserve(chosen.size());  // spans of it are kept
    Index targets = 0;
    for (const Index i : chosen) {
      const std::span<const std::int32_t> window = read.emplace_back(windows[i]);
      ids.push_back(window.first(window.size() - 1));
      next.push_back(window.subspan(1));
      targets += std::ssize(ids.back());
    }
    if (metrics) metrics->update(targets);
    // Padding comes after every token that counts, and no token attends to later ones.
    const Tensor x = (*network.model)(pad(ids).ids, {}, context);
    return {cross_entropy(network.logits(x), pad(next, -1).ids), targets};
  }

  LanguageModelMetrics metrics() const override { return {}; }
};

}  // namespace

std::unique_ptr<Task> make_language_model(const Config& config, const Task::Vocabularies& known,
                                          ReadCallback* callback) {
  return made<LanguageModel>(config, known, callback);
}

std::optional<Conflict> language_model_conflict(const Config& config) {
  if (!sees_ahead(config.model)) return std::nullopt;
  return Conflict{{"model.kind", "model.bidirectional", "task.kind"},
                  "task.kind \"language-model\" needs a causal model, which does not see the words "
                  "that it predicts: model.kind = \"decoder\", or \"recurrent\" in one direction"};
}

}  // namespace qkv
