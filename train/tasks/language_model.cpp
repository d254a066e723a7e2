#include "train/tasks/language_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "datasets/batch.h"
#include "datasets/text.h"
#include "datasets/text_file.h"

namespace qkv {
namespace {

/// Windows that evaluation takes at once.
Index windows_at_once(Index window) {
  constexpr Index tokens = 4096;
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

std::string text_of(const std::string& file) {
  return file.empty() ? std::string() : read_text(file);
}

std::size_t length(std::string_view text) {
  std::size_t length = 0;
  for_each_character(text, [&](std::string_view) { ++length; });
  return length;
}

/// Removes the last `count` characters from `text` and returns them.
std::string cut_off(std::string& text, std::size_t count) {
  std::size_t begin = 0;
  for (std::size_t left = length(text) - count; left > 0; --left)
    begin += first_character(std::string_view(text).substr(begin)).size();
  std::string end = text.substr(begin);
  text.resize(begin);
  return end;
}

/// Train, valid and test text: each from its file; of `task.data`, fractions at the end become test
/// and valid where these have no file, and the rest train.
std::array<std::string, 3> splits_of(const Config& config) {
  const TaskOptions& task = config.task;
  const bool generate = task.format == DataFormat::generated;
  if (!generate && task.data.empty())
    return {text_of(task.train), text_of(task.valid), text_of(task.test)};
  std::string text = generate ? generated(config.seed) : text_of(task.data);
  const auto part = [&, all = static_cast<double>(length(text))](const std::string& file,
                                                                 double fraction) {
    return file.empty() ? cut_off(text, static_cast<std::size_t>(all * fraction)) : text_of(file);
  };
  std::string valid = part(task.valid, task.valid_share);
  std::string test = part(task.test, task.test_share);
  return {std::move(text), std::move(valid), std::move(test)};
}

Vocabulary vocabulary_of(std::string_view text, Index min_count) {
  Vocabulary::Counts counts;
  for_each_character(text, [&](std::string_view c) {
    const auto found = counts.find(c);
    ++(found == counts.end() ? counts[std::string(c)] : found->second);
  });
  return Vocabulary::build(std::move(counts), min_count);
}

/// Whether a token's contextual vector depends on later tokens.
bool sees_ahead(const ModelOptions& model) {
  if (model.kind == ModelKind::recurrent) return model.bidirectional;
  return model.kind != ModelKind::decoder && model.kind != ModelKind::static_embedding;
}

}  // namespace

Index Windows::size() const {
  const Index next = std::ssize(tokens_) - 1;  // the first character is not predicted
  if (next <= 0) return 0;
  return 1 + (std::max<Index>(next - length_, 0) + stride_ - 1) / stride_;
}

std::span<const std::int32_t> Windows::operator[](Index i) const {
  const Index start = i * stride_, length = std::min(length_ + 1, std::ssize(tokens_) - start);
  return std::span(tokens_).subspan(static_cast<std::size_t>(start),
                                    static_cast<std::size_t>(length));
}

void LanguageModelMetrics::report(Evaluation& evaluation) const {
  evaluation.count = characters_;
  evaluation.metrics = {{"perplexity", std::exp(evaluation.loss)},
                        {"bits_per_token", evaluation.loss / std::numbers::ln2}};
  evaluation.score = -evaluation.loss;
}

LanguageModel::LanguageModel(const Config& config)
    : ExampleTask(config.model.max_length, windows_at_once(config.model.max_length)) {
  const auto texts = splits_of(config);
  vocabulary_ = vocabulary_of(texts.front(), config.task.min_count);
  const Index window = max_length();
  auto train = encoded(texts[0]);
  require<UserError>(std::ssize(train) > window,
                     "the training text has {} characters; model.max_length = {} needs one more "
                     "than that at least",
                     train.size(), window);
  set_splits({Windows(std::move(train), window, 1), Windows(encoded(texts[1]), window, window),
              Windows(encoded(texts[2]), window, window)});
}

LanguageModel::LanguageModel(const Config& config, const Vocabularies& vocabularies)
    : ExampleTask(config.model.max_length, windows_at_once(config.model.max_length)) {
  vocabulary_.emplace(token_list(vocabularies, "tokens"));
}

std::optional<Conflict> LanguageModel::conflict(const Config& config) {
  if (!sees_ahead(config.model)) return std::nullopt;
  return Conflict{{"model.kind", "model.bidirectional", "task.kind"},
                  "task.kind \"language-model\" needs a causal model, which does not see the words "
                  "that it predicts: model.kind = \"decoder\", or \"recurrent\" in one direction"};
}

std::vector<std::int32_t> LanguageModel::encoded(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for_each_character(
      text, [&](std::string_view c) { tokens.push_back(vocabulary().id(std::string(c))); });
  return tokens;
}

Windows LanguageModel::read_examples(const std::filesystem::path& file) const {
  return {encoded(text_of(file.string())), max_length(), max_length()};
}

BatchLoss LanguageModel::batch_loss(const Network& network, const Windows& windows,
                                    std::span<const Index> chosen, Context& context,
                                    LanguageModelMetrics* metrics) const {
  std::vector<std::span<const std::int32_t>> ids, next;
  ids.reserve(chosen.size());
  next.reserve(chosen.size());
  Index targets = 0;
  for (const Index i : chosen) {
    const auto window = windows[i];
    ids.push_back(window.first(window.size() - 1));
    next.push_back(window.subspan(1));
    targets += std::ssize(ids.back());
  }
  if (metrics) metrics->update(targets);
  // Padding comes after every character that counts, and no character attends to later ones.
  const Tensor x = (*network.model)(pad(ids).ids, {}, context);
  return {cross_entropy(network.logits(x), pad(next, -1).ids), targets};
}

Sentence LanguageModel::read(std::string_view text) const {
  Sentence sentence{characters(text), {}, {}};
  require<UserError>(!sentence.words.empty(), "the text is empty; give at least one character");
  require<UserError>(std::ssize(sentence.words) <= max_length(),
                     "the text has {} characters, more than the model's longest, model.max_length "
                     "= {}",
                     sentence.words.size(), max_length());
  sentence.ids = encoded(text);
  sentence.targets = {std::ssize(sentence.words) - 1};
  return sentence;
}

Scores LanguageModel::scores(const Network& network, const Sentence& sentence, Index index,
                             Context& context) const {
  const Indices ids(sentence.ids, {1, std::ssize(sentence.ids)});
  const Tensor x = (*network.model)(ids, {}, context);
  return {reshape(network.logits(slice(x, 1, index, index + 1)), {-1}), vocabulary().tokens(),
          "W y_i + b"};
}

}  // namespace qkv
