#include "train/tasks/masked_language_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "datasets/batch.h"
#include "train/tasks/splits.h"

namespace qkv {
namespace {

constexpr double masked_fraction = 0.8, replaced_fraction = 0.1;

/// Equal but for the space before a word.
bool same_piece(std::string_view a, std::string_view b) {
  const auto word = [](std::string_view piece) {
    return piece.size() > 1 && piece[0] == ' ' ? piece.substr(1) : piece;
  };
  return word(a) == word(b);
}

/// A vocabulary has more tokens than anybody reads.
void keep_most_probable(Prediction& prediction) {
  constexpr std::size_t most = 10;
  const Prediction all = prediction;
  std::vector<std::size_t> order(all.choices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return all.logits[i]; });
  order.resize(std::min(order.size(), most));
  prediction.choices.clear();
  prediction.logits.clear();
  prediction.probabilities.clear();
  for (const std::size_t i : order) {
    prediction.choices.push_back(all.choices[i]);
    prediction.logits.push_back(all.logits[i]);
    prediction.probabilities.push_back(all.probabilities[i]);
  }
}

}  // namespace

void for_each_ids(const EncodedTexts& texts, const Task::IdsSink& sink) {
  const std::int32_t end[] = {-1};
  for (Index i = 0; i < texts.size(); ++i) {
    sink(texts.sentences[i]);
    sink(end);
  }
}

void MaskedTokenMetrics::update(const Tensor& logits, const Indices& answers) {
  const auto values = logits.data<float>();
  const auto width = static_cast<std::size_t>(logits.dim(1));
  for (std::size_t i = 0; i < answers.data().size(); ++i) {
    const auto row = values.subspan(i * width, width);
    right_ += std::ranges::max_element(row) - row.begin() == answers.data()[i];
  }
  targets_ += answers.size();
}

void MaskedTokenMetrics::report(Evaluation& evaluation) const {
  evaluation.count = targets_;
  evaluation.metrics = {
      {"accuracy", static_cast<double>(right_) / std::max(static_cast<double>(targets_), 1.0)},
      {"perplexity", std::exp(evaluation.loss)}};
  evaluation.score = -evaluation.loss;
}

void MaskedLanguageModel::check_training(const Config& config) {
  require<UserError>(size(Split::train) > 0,
                     "{}: no token occurs task.min_count = {} times, so that none can be predicted",
                     source_of(config), config.task.min_count);
}

EncodedTexts MaskedLanguageModel::encoded(const Rows& rows, std::span<const Index> chosen,
                                          ReadCallback&) const {
  const CorpusEncoder encoder(rows.corpus, tokenizer());
  const Index ends = tokenizer().special_tokens(), longest = max_length() - 2 * ends;
  EncodedTexts texts;
  for (const Index text : chosen) {
    const std::vector<std::int32_t> ids = encoder.ids(text);
    if (ids.empty()) continue;
    const auto begin = ids.begin() + ends, end = ids.end() - ends;
    std::vector<std::int32_t> part;
    for (auto at = begin; at < end; at += std::min<Index>(longest, end - at)) {
      part.assign(ids.begin(), begin);
      part.insert(part.end(), at, at + std::min<Index>(longest, end - at));
      part.insert(part.end(), end, ids.end());
      const auto is_text = [&](std::int32_t id) { return tokenizer().is_text(id); };
      if (std::ranges::any_of(part, is_text)) texts.sentences.add(part);
    }
  }
  return texts;
}

std::int32_t MaskedLanguageModel::mask_id() const {
  return cutting().kind == TokenizerKind::word_piece ? vocabulary().id(mask_text)
                                                     : Vocabulary::unknown;
}

MaskedLanguageModel::Masked MaskedLanguageModel::masked(std::span<const std::int32_t> ids,
                                                        const Random& random) const {
  std::vector<Index> known;
  for (Index i = 0; i < std::ssize(ids); ++i)
    if (tokenizer().is_text(ids[static_cast<std::size_t>(i)])) known.push_back(i);
  const Index count = std::clamp<Index>(
      std::lround(mask_probability_ * static_cast<double>(ids.size())), 1, std::ssize(known));
  Masked result{{ids.begin(), ids.end()}, {}};
  // The permutation takes the draws up to the number of known tokens.
  std::uint64_t next = known.size() + 1;
  for (const Index i : random.permutation(std::ssize(known))) {
    if (std::ssize(result.positions) == count) break;
    const Index position = known[static_cast<std::size_t>(i)];
    result.positions.push_back(position);
    std::int32_t& id = result.ids[static_cast<std::size_t>(position)];
    const double kind = random.uniform(next++);
    const auto token = static_cast<Index>(random.bits(next++));
    constexpr Index first = Vocabulary::unknown + 1;
    if (kind < masked_fraction)
      id = mask_id();
    else if (kind < masked_fraction + replaced_fraction)
      id = static_cast<std::int32_t>(first + token % (vocabulary().size() - first));
  }
  return result;
}

BatchLoss MaskedLanguageModel::batch_loss(const Network& network, const EncodedTexts& texts,
                                          std::span<const Index> chosen, Context& context,
                                          MaskedTokenMetrics* metrics) const {
  std::vector<Masked> sentences;
  std::vector<std::span<const std::int32_t>> ids;
  sentences.reserve(chosen.size());
  for (const Index i : chosen) {
    const auto text = texts.sentences[i];
    const Random random = context.training() ? context.next_random() : drawn_for(text);
    ids.push_back(sentences.emplace_back(masked(text, random)).ids);
  }
  const TokenBatch batch = pad(ids);
  const Index time = batch.ids.dim(1);
  std::vector<std::int32_t> rows, right;
  for (std::size_t b = 0; b < sentences.size(); ++b) {
    const auto whole = texts.sentences[chosen[b]];
    for (const Index position : sentences[b].positions) {
      rows.push_back(static_cast<std::int32_t>(static_cast<Index>(b) * time + position));
      right.push_back(whole[static_cast<std::size_t>(position)]);
    }
  }
  const Index count = std::ssize(rows);
  const Tensor x = (*network.model)(batch.ids, batch.lengths, context);
  // Logits of the masked positions alone: those of a large vocabulary are what takes the most time.
  const Tensor at_masks = embedding(reshape(x, {-1, x.dim(2)}), Indices(rows, {count}));
  const Tensor logits = network.logits(at_masks);
  const Indices answers(right, {count});
  if (metrics) metrics->update(logits, answers);
  return {cross_entropy(logits, answers), count};
}

Sentence MaskedLanguageModel::read(std::string_view text) const {
  const auto pieces = cut_sentence(text, cutting()).pieces,
             mask = cut_phrase(mask_text, cutting()).pieces;
  Sentence sentence;
  for (auto at = pieces.begin();;) {
    const auto found = std::search(at, pieces.end(), mask.begin(), mask.end(), same_piece);
    const Sentence before = sentence_of({at, found});
    sentence.words.insert(sentence.words.end(), before.words.begin(), before.words.end());
    sentence.ids.insert(sentence.ids.end(), before.ids.begin(), before.ids.end());
    if (found == pieces.end()) break;
    sentence.targets.push_back(std::ssize(sentence.ids));
    sentence.words.emplace_back(mask_text);
    sentence.ids.push_back(mask_id());
    at = found + std::ssize(mask);
  }
  return fitted(std::move(sentence));
}

LabelledText MaskedLanguageModel::read_line(const TsvRow& row) const {
  LabelledText line = Reader::read_line(row);
  if (row.fields.size() > 1) line.label = row.fields.front();
  if (line.index >= 0) {
    const std::int32_t id = line.sentence.ids[static_cast<std::size_t>(line.index)];
    if (id != mask_id() && !vocabulary().is_unknown(id)) line.answer = id;
  }
  return line;
}

std::vector<Prediction> MaskedLanguageModel::predict(const Network& network,
                                                     std::string_view text) const {
  const Sentence sentence = read(text);
  require<UserError>(!sentence.targets.empty(),
                     "\"{}\" has no {}; write it in place of each word to predict", text,
                     mask_text);
  std::vector<Prediction> predictions = answers(network, text, sentence);
  for (Prediction& prediction : predictions) keep_most_probable(prediction);
  return predictions;
}

}  // namespace qkv
