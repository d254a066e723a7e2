#include "train/tasks/static_embedding.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "datasets/batch.h"
#include "train/tasks/splits.h"

namespace qkv {
namespace {

constexpr Index words_at_once = 256;

Index parsed_count(const std::string& text) {
  Index number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  require<FileError>(error == std::errc() && end == text.data() + text.size() && number >= 0,
                     "the checkpoint's /vocabulary/counts has \"{}\" for a count", text);
  return number;
}

}  // namespace

void for_each_ids(const WordContexts& contexts, const Task::IdsSink& sink) {
  const std::int32_t end[] = {-1};
  for (Index i = 0; i < contexts.lines.size(); ++i) {
    sink(contexts.lines[i]);
    sink(end);
  }
}

void EmbeddingMetrics::update(const Tensor& scores) {
  const auto values = scores.values();
  const Index choices = scores.dim(1);
  for (auto row = values.begin(); row != values.end(); row += choices)
    right_ += std::all_of(row + 1, row + choices, [&](double s) { return s < *row; });
  targets_ += static_cast<double>(scores.dim(0));
}

void EmbeddingMetrics::report(Evaluation& evaluation) const {
  if (objective_ == Objective::glove)
    evaluation.metrics = {{"error", std::sqrt(evaluation.loss)}};
  else
    evaluation.metrics = {{"accuracy", right_ / std::max(targets_, 1.0)}};
  evaluation.score = -evaluation.loss;
}

StaticEmbedding::StaticEmbedding(const Config& config)
    : RowTask(config, words_at_once), options_(config.task) {}

void StaticEmbedding::learn_lists(const Config&, const Rows& rows, std::span<const Index> training,
                                  const Vocabularies& known) {
  learn_tokens(rows.corpus.counts(training), known);
  const CorpusEncoder encoder(rows.corpus, tokenizer());
  counts_.resize(static_cast<std::size_t>(vocabulary().size()));
  for (const Index line : training)
    for (const auto id : encoder.ids(line)) ++counts_[static_cast<std::size_t>(id)];
  counts_[Vocabulary::unknown] = 0;
  Tokens texts;
  for (const Index count : counts_) texts.push_back(std::to_string(count));
  set_list("counts", std::move(texts));
}

void StaticEmbedding::restore_lists(const Vocabularies& lists) {
  set_list("counts", token_list(lists, "counts"));
  for (const std::string& text : list("counts")) counts_.push_back(parsed_count(text));
  require<FileError>(std::ssize(counts_) == vocabulary().size(),
                     "the checkpoint's /vocabulary/counts has {} entries for {} tokens",
                     counts_.size(), vocabulary().size());
  set_cumulative();
}

void StaticEmbedding::check_training(const Config& config) {
  require<UserError>(size(Split::train) > 0,
                     "{}: no line has two words that occur task.min_count = {} times",
                     source_of(config), options_.min_count);
  set_cumulative();
}

std::optional<Conflict> StaticEmbedding::conflict(const Config& config) {
  if (config.model.kind != ModelKind::static_embedding)
    return Conflict{{"model.kind", "task.kind"},
                    "task.kind \"static-embedding\" needs model.kind = \"static\""};
  if (config.task.objective == Objective::glove && !config.model.bias)
    return Conflict{{"model.bias", "task.objective"},
                    "task.objective \"glove\" needs model.bias = true"};
  return std::nullopt;
}

void StaticEmbedding::set_cumulative() {
  double total = 0;
  for (const Index count : counts_)
    cumulative_.push_back(total += std::pow(static_cast<double>(count), 0.75));
  require<UserError>(total > 0, "the checkpoint's /vocabulary/counts are all 0");
  for (double& probability : cumulative_) probability /= total;
}

WordContexts StaticEmbedding::encoded(const Rows& rows, std::span<const Index> chosen,
                                      ReadCallback&) const {
  const CorpusEncoder encoder(rows.corpus, tokenizer());
  WordContexts contexts;
  for (const Index line : chosen) {
    Ids ids = encoder.ids(line);
    std::erase(ids, Vocabulary::unknown);
    if (ids.size() >= 2) contexts.lines.add(ids);
  }
  require<UserError>(options_.objective == Objective::glove ||
                         std::ranges::count_if(counts_, [](Index count) { return count > 0; }) != 1,
                     "the training text has one word alone; negative sampling needs two different "
                     "ones");
  if (options_.objective == Objective::glove)
    contexts.pairs = co_occurrences(contexts.lines);
  else
    contexts.words = std::ssize(contexts.lines.flat());
  return contexts;
}

std::vector<WordContexts::Pair> StaticEmbedding::co_occurrences(
    const Lists<std::int32_t>& lines) const {
  std::map<std::pair<std::int32_t, std::int32_t>, double> counts;
  for (Index number = 0; number < lines.size(); ++number) {
    const auto line = lines[number];
    for (std::size_t i = 0; i < line.size(); ++i)
      for (std::size_t d = 1; d <= static_cast<std::size_t>(options_.window) && d <= i; ++d) {
        const double count = 1 / static_cast<double>(d);
        counts[{line[i], line[i - d]}] += count;
        counts[{line[i - d], line[i]}] += count;
      }
  }
  std::vector<WordContexts::Pair> pairs;
  pairs.reserve(counts.size());
  for (const auto& [words, count] : counts) pairs.push_back({words.first, words.second, count});
  return pairs;
}

std::int32_t StaticEmbedding::negative(const Random& random, std::uint64_t index,
                                       std::int32_t target) const {
  const auto at = static_cast<std::size_t>(target);
  const double before = at > 0 ? cumulative_[at - 1] : 0, own = cumulative_[at] - before;
  /// Probability of all words up to `word` but the target.
  const auto without_target = [&](std::size_t word) {
    return word < at ? cumulative_[word] : word == at ? before : cumulative_[word] - own;
  };
  std::size_t first = 0, last = cumulative_.size() - 1;
  const double drawn = random.uniform(index) * without_target(last);
  while (first < last) {  // the first word whose probability with those before it is above `drawn`
    const std::size_t middle = (first + last) / 2;
    if (without_target(middle) > drawn)
      last = middle;
    else
      first = middle + 1;
  }
  return static_cast<std::int32_t>(first);
}

/// The line of a word; of a pair its word alone.
LabelledText StaticEmbedding::example_of(const WordContexts& contexts, Index i) const {
  if (i >= contexts.words)
    return text_of_ids({contexts.pairs[static_cast<std::size_t>(i - contexts.words)].word});
  const auto [number, position] = contexts.lines.locate(i);
  const auto line = contexts.lines[number];
  LabelledText text = text_of_ids({line.begin(), line.end()});
  text.index = position;
  return text;
}

void StaticEmbedding::add_samples(Samples& samples, std::span<const std::int32_t> line,
                                  Index position, const Random& random) const {
  std::uint64_t drawn = 0;
  const Index reach = 1 + static_cast<Index>(random.bits(drawn++)) % options_.window;
  const auto add = [&](Ids input, std::int32_t target) {
    samples.inputs.push_back(std::move(input));
    samples.candidates.push_back(target);
    for (Index j = 0; j < options_.negatives; ++j)
      samples.candidates.push_back(negative(random, drawn++, target));
  };
  const Index first = std::max<Index>(position - reach, 0),
              last = std::min<Index>(position + reach, std::ssize(line) - 1);
  Ids neighbours;
  for (Index i = first; i <= last; ++i)
    if (i != position) neighbours.push_back(line[static_cast<std::size_t>(i)]);
  const std::int32_t word = line[static_cast<std::size_t>(position)];
  if (options_.objective == Objective::cbow)
    add(neighbours, word);
  else
    for (const auto neighbour : neighbours) add({word}, neighbour);
}

StaticEmbedding::Ids StaticEmbedding::window_of(std::span<const std::int32_t> line,
                                                Index position) const {
  const Index first = std::max<Index>(position - options_.window, 0),
              end = std::min<Index>(position + options_.window + 1, std::ssize(line));
  Ids window = {static_cast<std::int32_t>(position - first)};
  window.insert(window.end(), line.begin() + first, line.begin() + end);
  return window;
}

BatchLoss StaticEmbedding::window_loss(const Network& network, const WordContexts& contexts,
                                       std::span<const Index> chosen, Context& context,
                                       EmbeddingMetrics* metrics) const {
  Samples samples;
  for (const Index word : chosen) {
    const auto [line, position] = contexts.lines.locate(word);
    const Random random = context.training() ? context.next_random()
                                             : drawn_for(window_of(contexts.lines[line], position));
    add_samples(samples, contexts.lines[line], position, random);
  }
  const Index count = std::ssize(samples.inputs), choices = 1 + options_.negatives;
  const TokenBatch input = pad(samples.inputs);
  const Tensor x =
      masked_mean(embedding(network.model->embedding_table(), input.ids), input.lengths);
  const Tensor y = embedding(network.head->weight, Indices(samples.candidates, {count, choices}));
  const Tensor scores = reshape(matmul(y, reshape(x, {count, -1, 1})), {count, choices});
  std::vector<double> truth(samples.candidates.size());
  for (std::size_t i = 0; i < truth.size(); i += static_cast<std::size_t>(choices)) truth[i] = 1;
  const Tensor targets = Tensor::from(truth, scores.shape(), scores.dtype());
  if (metrics) metrics->update(scores);
  return {binary_cross_entropy_with_logits(scores, targets) * static_cast<double>(choices), count};
}

BatchLoss StaticEmbedding::glove_loss(const Network& network, const WordContexts& contexts,
                                      std::span<const Index> chosen) {
  Ids words, neighbours;
  std::vector<double> logs, weights;
  for (const Index i : chosen) {
    const WordContexts::Pair& pair = contexts.pairs[static_cast<std::size_t>(i)];
    words.push_back(pair.word);
    neighbours.push_back(pair.neighbour);
    logs.push_back(std::log(pair.count));
    weights.push_back(std::min(1.0, std::pow(pair.count / 100, 0.75)));
  }
  const Index count = std::ssize(words);
  const Indices i(words, {count}), j(neighbours, {count});
  const Tensor table = network.model->embedding_table(), output = network.head->weight;
  const Tensor bias = reshape(*network.head->bias, {-1, 1});
  const Tensor products = sum(embedding(table, i) * embedding(output, j), 1);
  const Tensor biases = reshape(embedding(bias, i) + embedding(bias, j), {count});
  const Tensor errors = products + biases - Tensor::from(logs, {count}, products.dtype());
  return {mean(Tensor::from(weights, {count}, products.dtype()) * errors * errors), count};
}

BatchLoss StaticEmbedding::batch_loss(const Network& network, const WordContexts& contexts,
                                      std::span<const Index> chosen, Context& context,
                                      EmbeddingMetrics* metrics) const {
  return options_.objective == Objective::glove
             ? glove_loss(network, contexts, chosen)
             : window_loss(network, contexts, chosen, context, metrics);
}

std::vector<Prediction> StaticEmbedding::predict(const Network&, std::string_view) const {
  throw UserError("a model of static embeddings predicts nothing; qkv embed shows its vectors");
}

}  // namespace qkv
