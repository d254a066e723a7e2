#include "train/tasks/language_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/parallel.h"
#include "datasets/batch.h"

namespace qkv {
namespace {

/// Windows that evaluation takes at once.
Index windows_at_once(Index window) {
  constexpr Index tokens = 1024;
  return std::max<Index>(tokens / window, 1);
}

/// Random characters, for measuring speed: with padding and the unknown token 65 in all, as many as
/// Shakespeare's plays have.
std::string generated(std::uint64_t seed) {
  const Random random(seed, Purpose::sampling);
  std::string text(1 << 16, ' ');
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>('!' + random.bits(i) % 63);
  return text;
}

BlockedText text_of(const std::string& file, ReadCallback& callback) {
  return file.empty() ? BlockedText() : BlockedText(file, callback);
}

/// Train, valid and test text: each from its file; of `task.data`, fractions at the end become test
/// and valid where these have no file, and the rest train.
std::array<BlockedText, 3> splits_of(const Config& config, ReadCallback& callback) {
  const TaskOptions& task = config.task;
  const bool generate = task.format == DataFormat::generated;
  if (!generate && task.data.empty())
    return {text_of(task.train, callback), text_of(task.valid, callback),
            text_of(task.test, callback)};
  BlockedText text = generate ? BlockedText(generated(config.seed)) : text_of(task.data, callback);
  const auto part = [&, all = static_cast<double>(text.characters())](const std::string& file,
                                                                      double fraction) {
    return file.empty() ? text.cut_off(static_cast<Index>(std::llround(all * fraction)))
                        : text_of(file, callback);
  };
  BlockedText valid = part(task.valid, task.valid_share);
  BlockedText test = part(task.test, task.test_share);
  return {std::move(text), std::move(valid), std::move(test)};
}

Vocabulary::Counts counts_of(const BlockedText& text, const Cutting& cutting,
                             ReadCallback& callback) {
  const Chunks chunks{text.blocks(), std::min<Index>(text.blocks(), threads())};
  std::vector<PieceCounter> counters(static_cast<std::size_t>(chunks.count), PieceCounter(cutting));
  const std::string what = "counting " + text.name();
  parallel_for(chunks.count, [&](Index chunk) {
    for (Index i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      if (chunk == 0 && i % 256 == 0)
        callback.on_reading(what, static_cast<double>(i) / static_cast<double>(chunks.end(0)));
      counters[static_cast<std::size_t>(chunk)].add(text.block(i));
    }
  });
  PieceCounter all(cutting);
  for (const PieceCounter& counter : counters) all += counter;
  return all.counts();
}

/// Whether a token's contextual vector depends on later tokens.
bool sees_ahead(const ModelOptions& model) {
  if (model.kind == ModelKind::recurrent) return model.bidirectional;
  return model.kind != ModelKind::decoder && model.kind != ModelKind::static_embedding;
}

}  // namespace

Index Windows::size() const {
  const Index next = text_.size() - 1;  // the first token is not predicted
  if (next <= 0) return 0;
  return 1 + (std::max<Index>(next - length_, 0) + stride_ - 1) / stride_;
}

std::vector<std::int32_t> Windows::operator[](Index i) const {
  const Index start = i * stride_;
  return text_.ids(start, std::min(start + length_ + 1, text_.size()));
}

void LanguageModelMetrics::report(Evaluation& evaluation) const {
  evaluation.count = tokens_;
  evaluation.metrics = {{"perplexity", std::exp(evaluation.loss)},
                        {"bits_per_token", evaluation.loss / std::numbers::ln2}};
  evaluation.score = -evaluation.loss;
}

LanguageModel::LanguageModel(const Config& config, const Vocabularies& known,
                             ReadCallback& callback)
    : ExampleTask(config, windows_at_once(config.model.max_length)) {
  auto texts = splits_of(config, callback);
  learn_tokens(counts_of(texts[0], cutting(), callback), known);
  Windows train = windows(std::move(texts[0]), config.task.stride, callback);
  require<UserError>(train.tokens() > max_length(),
                     "the training text has {} tokens; model.max_length = {} needs one more than "
                     "that at least",
                     train.tokens(), max_length());
  set_splits({std::move(train), windows(std::move(texts[1]), max_length(), callback),
              windows(std::move(texts[2]), max_length(), callback)});
}

LanguageModel::LanguageModel(const Config& config, const Vocabularies& vocabularies)
    : ExampleTask(config, windows_at_once(config.model.max_length)) {
  restore_tokens(vocabularies);
}

std::optional<Conflict> LanguageModel::conflict(const Config& config) {
  if (!sees_ahead(config.model)) return std::nullopt;
  return Conflict{{"model.kind", "model.bidirectional", "task.kind"},
                  "task.kind \"language-model\" needs a causal model, which does not see the words "
                  "that it predicts: model.kind = \"decoder\", or \"recurrent\" in one direction"};
}

Windows LanguageModel::windows(BlockedText text, Index stride, ReadCallback& callback) const {
  const std::string name = text.name();
  EncodedText encoded(std::move(text), shared_tokenizer(), callback);
  if (encoded.unknown() > 0)
    callback.on_message(fmt::format("{}: {} of {} tokens are not in the vocabulary", name,
                                    encoded.unknown(), encoded.size()));
  return {std::move(encoded), max_length(), stride};
}

Windows LanguageModel::read_examples(const std::filesystem::path& file,
                                     ReadCallback& callback) const {
  return windows(BlockedText(file, callback), max_length(), callback);
}

LabelledText LanguageModel::example_of(const Windows& windows, Index i) const {
  std::vector<std::int32_t> ids = windows[i];
  ids.pop_back();  // the token after the window
  return text_of_ids(std::move(ids));
}

BatchLoss LanguageModel::batch_loss(const Network& network, const Windows& windows,
                                    std::span<const Index> chosen, Context& context,
                                    LanguageModelMetrics* metrics) const {
  std::vector<std::vector<std::int32_t>> read;
  std::vector<std::span<const std::int32_t>> ids, next;
  read.reserve(chosen.size());
  ids.reserve(chosen.size());
  next.reserve(chosen.size());
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

Sentence LanguageModel::read(std::string_view text) const {
  Sentence sentence = sentence_of(pieces_of(text, cutting()));
  require<UserError>(!sentence.words.empty(), "the text is empty; give at least one token");
  require<UserError>(std::ssize(sentence.words) <= max_length(),
                     "the text has {} tokens, more than the model's longest, model.max_length = {}",
                     sentence.words.size(), max_length());
  sentence.targets = {std::ssize(sentence.words) - 1};
  return sentence;
}

Scores LanguageModel::scores(const Network& network, const Sentence& sentence, Index index,
                             Context& context) const {
  return scores_of_token(network, sentence, index, context, vocabulary().tokens());
}

}  // namespace qkv
