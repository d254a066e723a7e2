#include "train/tasks/translation.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "datasets/batch.h"
#include "datasets/text.h"
#include "train/tasks/chrf.h"
#include "train/tasks/splits.h"

namespace qkv {
namespace {

constexpr Index evaluation_batch = 64;
const std::string begin_token = "<bos>", end_token = "<eos>";

using Words = std::vector<std::string>;

/// The most probable word of each sequence and its probability, from logits [B, 1, V].
std::vector<std::pair<std::int32_t, double>> most_probable(const Tensor& logits) {
  const auto width = static_cast<std::size_t>(logits.dim(-1));
  const auto values = softmax(logits).values();
  std::vector<std::pair<std::int32_t, double>> result;
  for (std::size_t i = 0; i < values.size(); i += width) {
    const auto row = std::span(values).subspan(i, width);
    const auto best = std::ranges::max_element(row);
    result.emplace_back(static_cast<std::int32_t>(best - row.begin()), *best);
  }
  return result;
}

}  // namespace

Translation::Translation(const Config& config) : max_length_(config.model.max_length) {
  const auto splits = read_splits(config, read_translate_tsv);
  require<UserError>(!splits[0].empty(),
                     "{}: task.valid_share and task.test_share leave no example to learn from",
                     config.task.data);
  std::vector<Words> sentences;
  for (const SentencePair& pair : splits[0]) {
    sentences.push_back(pair.source);
    sentences.push_back(pair.target);
    // Often enough to be in the vocabulary, however rare its words may be.
    for (Index i = 0; i < config.task.min_count; ++i) sentences.push_back({begin_token, end_token});
  }
  vocabulary_ = Vocabulary::build(sentences, config.task.min_count);
  std::ranges::transform(splits, splits_.begin(),
                         [&](const auto& pairs) { return encoded(pairs); });
}

Translation::Translation(const Config& config, const Vocabularies& vocabularies)
    : max_length_(config.model.max_length), vocabulary_(token_list(vocabularies, "tokens")) {
  for (const std::string& token : {begin_token, end_token})
    require<FileError>(vocabulary_->id(token) != Vocabulary::unknown,
                       "the checkpoint's /vocabulary/tokens has no {}", token);
}

Translation::Ids Translation::encoded(const Words& words) const {
  Ids ids;
  for (const std::string& word : words) ids.push_back(vocabulary_->id(word));
  return ids;
}

std::vector<Translation::Example> Translation::encoded(
    const std::vector<SentencePair>& pairs) const {
  std::vector<Example> examples;
  for (const SentencePair& pair : pairs) {
    const std::size_t longer = std::max(pair.source.size(), pair.target.size() + 1);
    require<UserError>(
        static_cast<Index>(longer) <= max_length_,
        "{}: the sentence has {} words with its end, more than model.max_length = {}", pair.place,
        longer, max_length_);
    examples.push_back({encoded(pair.source), encoded(pair.target),
                        fmt::format("{}", fmt::join(pair.target, " "))});
  }
  return examples;
}

BatchLoss Translation::loss(const Network& network, const std::vector<Example>& examples,
                            std::span<const Index> chosen, Context& context) const {
  std::vector<Ids> sources, read, written;
  Index targets = 0;
  for (const Index i : chosen) {
    const Example& example = examples.at(static_cast<std::size_t>(i));
    sources.push_back(example.source);
    read.push_back(example.target);
    read.back().insert(read.back().begin(), vocabulary_->id(begin_token));
    written.push_back(example.target);
    written.back().push_back(vocabulary_->id(end_token));
    targets += std::ssize(written.back());
  }
  const TokenBatch source = pad(sources), before = pad(read);
  const Tensor memory = (*network.model)(source.ids, source.lengths, context);
  const Tensor x = network.model->decode(before.ids, memory, source.lengths, context);
  return {cross_entropy(network.logits(x), pad(written, -1).ids), targets};
}

Index Translation::tokens(Index example) const {
  const Example& pair = examples(Split::train).at(static_cast<std::size_t>(example));
  return std::ssize(pair.source) + 1 + std::ssize(pair.target);  // 1: what the decoder begins with
}

BatchLoss Translation::loss(const Network& network, std::span<const Index> chosen,
                            Context& context) const {
  return loss(network, examples(Split::train), chosen, context);
}

std::vector<Translation::Output> Translation::outputs(const Network& network,
                                                      std::span<const Ids> sources) const {
  const NoGrad no_grad;
  Context encoding;
  const TokenBatch source = pad(sources);
  const Tensor memory = (*network.model)(source.ids, source.lengths, encoding);
  KeyValueCache cache;
  Context decoding({.cache = &cache});
  std::vector<Output> outputs(sources.size());
  std::vector<bool> done(sources.size());
  Ids last(sources.size(), vocabulary_->id(begin_token));
  for (Index t = 0; t < max_length_ && std::ranges::find(done, false) != done.end(); ++t) {
    const Indices ids(last, {std::ssize(last), 1});
    const Tensor x = network.model->decode(ids, memory, source.lengths, decoding);
    const auto next = most_probable(network.logits(x));
    for (std::size_t i = 0; i < next.size(); ++i) {
      last[i] = next[i].first;
      if (done[i]) continue;
      outputs[i].probability *= next[i].second;
      done[i] = last[i] == vocabulary_->id(end_token);
      if (!done[i]) outputs[i].ids.push_back(last[i]);
    }
  }
  return outputs;
}

std::string Translation::text_of(const Ids& ids) const {
  std::string text;
  for (const auto id : ids) text += (text.empty() ? "" : " ") + vocabulary_->token(id);
  return text;
}

Evaluation Translation::evaluate(const Network& network,
                                 const std::vector<Example>& examples) const {
  ChrF chrf;
  double right = 0;
  const auto measure = [&](std::span<const Index> chosen, Context& context) {
    std::vector<Ids> sources;
    for (const Index i : chosen) sources.push_back(examples[static_cast<std::size_t>(i)].source);
    const auto written = outputs(network, sources);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const std::string text = text_of(written[i].ids);
      const std::string& reference = examples[static_cast<std::size_t>(chosen[i])].reference;
      chrf.add(text, reference);
      right += text == reference;
    }
    return loss(network, examples, chosen, context);
  };
  Evaluation evaluation;
  evaluation.count = std::ssize(examples);
  evaluation.loss = mean_loss(evaluation.count, evaluation_batch, measure);
  evaluation.score = right / std::max(static_cast<double>(evaluation.count), 1.0);
  evaluation.metrics = {{"exact_match", evaluation.score}, {"chrf", chrf.value()}};
  return evaluation;
}

Evaluation Translation::evaluate(const Network& network, Split split) const {
  return evaluate(network, examples(split));
}

Evaluation Translation::evaluate(const Network& network, const std::filesystem::path& file) const {
  return evaluate(network, encoded(read_translate_tsv(file)));
}

Sentence Translation::read(std::string_view text) const {
  return read_sentence(text, *vocabulary_, max_length_);
}

std::vector<Prediction> Translation::predict(const Network& network, std::string_view text) const {
  const Ids source[] = {read(text).ids};
  const Output output = outputs(network, source)[0];
  Prediction prediction{std::string(text), std::nullopt, text_of(output.ids), output.probability};
  prediction.is_output = true;
  return {prediction};
}

}  // namespace qkv
