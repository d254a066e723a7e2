#include "train/tasks/translation.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "datasets/batch.h"
#include "train/tasks/splits.h"

namespace qkv {
namespace {

const std::string begin_token = "<bos>", end_token = "<eos>";

std::vector<SentencePair> read_pairs(const std::filesystem::path& file) {
  std::vector<SentencePair> pairs;
  for (const TsvRow& row : read_tsv(file, translate_columns))
    pairs.push_back(parse_translation(row));
  return pairs;
}

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

void for_each_ids(const std::vector<EncodedPair>& examples, const Task::IdsSink& sink) {
  const std::int32_t end[] = {-1};
  for (const EncodedPair& example : examples)
    for (const auto* ids : {&example.source, &example.target}) {
      sink(*ids);
      sink(end);
    }
}

void TranslationMetrics::update(const std::string& output, const std::string& reference) {
  chrf_.add(output, reference);
  right_ += output == reference;
}

void TranslationMetrics::report(Evaluation& evaluation) const {
  evaluation.score = right_ / std::max(static_cast<double>(evaluation.count), 1.0);
  evaluation.metrics = {{"exact_match", evaluation.score}, {"chrf", chrf_.value()}};
}

Translation::Translation(const Config& config) : ExampleTask(config.model.max_length) {
  const auto splits = read_splits(config, read_pairs);
  std::vector<std::vector<std::string>> sentences;
  for (const SentencePair& pair : splits[0]) {
    sentences.push_back(pair.source);
    sentences.push_back(pair.target);
    // Often enough to be in the vocabulary, however rare its words may be.
    for (Index i = 0; i < config.task.min_count; ++i) sentences.push_back({begin_token, end_token});
  }
  vocabulary_ = Vocabulary::build(sentences, config.task.min_count);
  set_splits({encoded(splits[0]), encoded(splits[1]), encoded(splits[2])});
}

Translation::Translation(const Config& config, const Vocabularies& vocabularies)
    : ExampleTask(config.model.max_length) {
  vocabulary_.emplace(token_list(vocabularies, "tokens"));
  for (const std::string& token : {begin_token, end_token})
    require<FileError>(vocabulary().id(token) != Vocabulary::unknown,
                       "the checkpoint's /vocabulary/tokens has no {}", token);
}

Translation::Examples Translation::encoded(const std::vector<SentencePair>& pairs) const {
  Examples examples;
  for (const SentencePair& pair : pairs) {
    const std::size_t longer = std::max(pair.source.size(), pair.target.size() + 1);
    require<UserError>(
        static_cast<Index>(longer) <= max_length(),
        "{}: the sentence has {} words with its end, more than model.max_length = {}", pair.place,
        longer, max_length());
    examples.push_back({vocabulary().ids(pair.source), vocabulary().ids(pair.target),
                        fmt::format("{}", fmt::join(pair.target, " "))});
  }
  return examples;
}

Translation::Examples Translation::read_examples(const std::filesystem::path& file) const {
  return encoded(read_pairs(file));
}

BatchLoss Translation::batch_loss(const Network& network, const Examples& examples,
                                  std::span<const Index> chosen, Context& context,
                                  TranslationMetrics* metrics) const {
  std::vector<Ids> sources, inputs, outputs;
  Index targets = 0;
  for (const Index i : chosen) {
    const EncodedPair& example = examples.at(static_cast<std::size_t>(i));
    sources.push_back(example.source);
    inputs.push_back(example.target);
    inputs.back().insert(inputs.back().begin(), vocabulary().id(begin_token));
    outputs.push_back(example.target);
    outputs.back().push_back(vocabulary().id(end_token));
    targets += std::ssize(outputs.back());
  }
  if (metrics) {
    const auto translations = decoded(network, sources);
    for (std::size_t i = 0; i < chosen.size(); ++i)
      metrics->update(text_of(translations[i].ids),
                      examples[static_cast<std::size_t>(chosen[i])].reference);
  }
  const TokenBatch source = pad(sources), input = pad(inputs);
  const Tensor encoded = (*network.model)(source.ids, source.lengths, context);
  const Tensor x = network.model->decode(input.ids, encoded, source.lengths, context);
  return {cross_entropy(network.logits(x), pad(outputs, -1).ids), targets};
}

Index Translation::tokens(Index example) const {
  const EncodedPair& pair = examples(Split::train).at(static_cast<std::size_t>(example));
  return std::ssize(pair.source) + 1 + std::ssize(pair.target);  // 1: <bos>
}

std::vector<Translation::Output> Translation::decoded(const Network& network,
                                                      std::span<const Ids> sources) const {
  const NoGrad no_grad;
  Context encoding;
  const TokenBatch source = pad(sources);
  const Tensor encoded = (*network.model)(source.ids, source.lengths, encoding);
  KeyValueCache cache;
  Context decoding({.cache = &cache});
  std::vector<Output> outputs(sources.size());
  std::vector<bool> done(sources.size());
  Ids last(sources.size(), vocabulary().id(begin_token));
  for (Index t = 0; t < max_length() && std::ranges::find(done, false) != done.end(); ++t) {
    const Indices ids(last, {std::ssize(last), 1});
    const Tensor x = network.model->decode(ids, encoded, source.lengths, decoding);
    const auto next = most_probable(network.logits(x));
    for (std::size_t i = 0; i < next.size(); ++i) {
      last[i] = next[i].first;
      if (done[i]) continue;
      outputs[i].probability *= next[i].second;
      done[i] = last[i] == vocabulary().id(end_token);
      if (!done[i]) outputs[i].ids.push_back(last[i]);
    }
  }
  return outputs;
}

std::string Translation::text_of(const Ids& ids) const {
  std::string text;
  for (const auto id : ids) text += (text.empty() ? "" : " ") + vocabulary().token(id);
  return text;
}

LabelledText Translation::read_line(const TsvRow& row) const {
  row.require_labelled_text();
  return {.text = row.fields.front(), .sentence = read(row.fields.front())};
}

std::vector<Prediction> Translation::predict(const Network& network, std::string_view text) const {
  const Ids source[] = {read(text).ids};
  const Output output = decoded(network, source)[0];
  Prediction prediction{std::string(text), std::nullopt, text_of(output.ids), output.probability};
  prediction.is_output = true;
  return {prediction};
}

}  // namespace qkv
