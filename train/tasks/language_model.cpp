#include "train/tasks/language_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "datasets/batch.h"
#include "datasets/text.h"
#include "datasets/text_file.h"

namespace qkv {
namespace {

constexpr Index evaluation_tokens = 4096;  ///< in one batch

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

/// Takes the last characters, so many, off `text`.
std::string cut_off(std::string& text, std::size_t count) {
  std::size_t begin = 0;
  for (std::size_t left = length(text) - count; left > 0; --left)
    begin += first_character(std::string_view(text).substr(begin)).size();
  std::string end = text.substr(begin);
  text.resize(begin);
  return end;
}

/// Train, valid and test text: each from its file; of `task.data`, shares at the end become test
/// and valid where these have no file, and the rest train.
std::array<std::string, 3> splits_of(const Config& config) {
  const TaskOptions& task = config.task;
  const bool generate = task.format == DataFormat::generated;
  if (!generate && task.data.empty())
    return {text_of(task.train), text_of(task.valid), text_of(task.test)};
  std::string text = generate ? generated(config.seed) : text_of(task.data);
  const auto part = [&, all = static_cast<double>(length(text))](const std::string& file,
                                                                 double share) {
    return file.empty() ? cut_off(text, static_cast<std::size_t>(all * share)) : text_of(file);
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

}  // namespace

LanguageModel::LanguageModel(const Config& config) : window_(config.model.max_length) {
  const auto splits = splits_of(config);
  vocabulary_ = vocabulary_of(splits.front(), config.task.min_count);
  std::ranges::transform(splits, splits_.begin(), [&](const auto& s) { return encoded(s); });
  require<UserError>(size(Split::train) > 0,
                     "the training text has {} characters; model.max_length = {} needs one more "
                     "than that at least",
                     splits_[0].size(), window_);
}

LanguageModel::LanguageModel(const Config& config, const Vocabularies& vocabularies)
    : window_(config.model.max_length), vocabulary_(token_list(vocabularies, "tokens")) {}

LanguageModel::Tokens LanguageModel::encoded(std::string_view text) const {
  Tokens tokens;
  tokens.reserve(text.size());
  for_each_character(
      text, [&](std::string_view c) { tokens.push_back(vocabulary_->id(std::string(c))); });
  return tokens;
}

Index LanguageModel::size(Split split) const {
  const Index next = std::ssize(tokens(split)) - 1;  // the first character is not foretold
  if (split == Split::train) return std::max<Index>(next - window_ + 1, 0);
  return std::max<Index>((next + window_ - 1) / window_, 0);
}

BatchLoss LanguageModel::loss(const Network& network, const Tokens& tokens,
                              std::span<const Index> starts, Context& context) const {
  std::vector<Tokens> ids, next;
  Index targets = 0;
  for (const Index start : starts) {
    const Index length = std::min(window_, std::ssize(tokens) - 1 - start);
    const auto first = tokens.begin() + start;
    ids.emplace_back(first, first + length);
    next.emplace_back(first + 1, first + length + 1);
    targets += length;
  }
  // Padding stands behind every character that counts, and no character attends to later ones.
  const Tensor x = (*network.model)(pad(ids).ids, {}, context);
  return {cross_entropy(network.logits(x), pad(next, -1).ids), targets};
}

BatchLoss LanguageModel::loss(const Network& network, std::span<const Index> examples,
                              Context& context) const {
  return loss(network, tokens(Split::train), examples, context);
}

Evaluation LanguageModel::evaluate(const Network& network, const Tokens& tokens) const {
  Evaluation evaluation;
  evaluation.count = std::max<Index>(std::ssize(tokens) - 1, 0);
  const Index windows = (evaluation.count + window_ - 1) / window_;
  const auto measure = [&](std::span<const Index> chosen, Context& context) {
    std::vector<Index> starts;
    for (const Index i : chosen) starts.push_back(i * window_);
    return loss(network, tokens, starts, context);
  };
  evaluation.loss = mean_loss(windows, std::max<Index>(evaluation_tokens / window_, 1), measure);
  evaluation.metrics = {{"perplexity", std::exp(evaluation.loss)},
                        {"bits_per_token", evaluation.loss / std::numbers::ln2}};
  evaluation.score = -evaluation.loss;
  return evaluation;
}

Evaluation LanguageModel::evaluate(const Network& network, Split split) const {
  return evaluate(network, tokens(split));
}

Evaluation LanguageModel::evaluate(const Network& network,
                                   const std::filesystem::path& file) const {
  return evaluate(network, encoded(text_of(file.string())));
}

Sentence LanguageModel::read(std::string_view text) const {
  Sentence sentence{characters(text), {}, {}};
  require<UserError>(!sentence.words.empty(), "the text is empty; give at least one character");
  require<UserError>(std::ssize(sentence.words) <= window_,
                     "the text has {} characters, more than the model's longest, model.max_length "
                     "= {}",
                     sentence.words.size(), window_);
  sentence.ids = encoded(text);
  sentence.targets = {std::ssize(sentence.words) - 1};
  return sentence;
}

Scores LanguageModel::scores(const Network& network, const Sentence& sentence, Index index,
                             Context& context) const {
  const Indices ids(sentence.ids, {1, std::ssize(sentence.ids)});
  const Tensor x = (*network.model)(ids, {}, context);
  return {reshape(network.logits(slice(x, 1, index, index + 1)), {-1}), vocabulary_->tokens(),
          "W y_i + b"};
}

std::vector<Prediction> LanguageModel::predict(const Network& network,
                                               std::string_view text) const {
  const NoGrad no_grad;
  Context context;
  const Sentence sentence = read(text);
  const Index last = std::ssize(sentence.ids) - 1;
  return {prediction_of(text, last, scores(network, sentence, last, context))};
}

}  // namespace qkv
