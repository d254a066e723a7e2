#include "train/tasks/static_embedding.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "datasets/batch.h"
#include "datasets/text.h"
#include "datasets/text_file.h"
#include "train/tasks/splits.h"

namespace qkv {
namespace {

constexpr Index evaluation_batch = 256;

/// Of a line with columns the last, so that the labelled files of other tasks serve, too.
std::vector<std::vector<std::string>> read_words(const std::string& file) {
  std::vector<std::vector<std::string>> lines;
  for (const std::string& line : read_lines(file))
    lines.push_back(tokenized(std::string_view(line).substr(line.rfind('\t') + 1)));
  return lines;
}

Index whole_number(const std::string& text) {
  Index number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  require<FileError>(error == std::errc() && end == text.data() + text.size() && number >= 0,
                     "the checkpoint's /vocabulary/counts has \"{}\" for a count", text);
  return number;
}

}  // namespace

StaticEmbedding::StaticEmbedding(const Config& config)
    : options_(config.task), max_length_(config.model.max_length) {
  const auto splits = read_splits(config, read_words);
  vocabulary_ = Vocabulary::build(splits[0], options_.min_count);
  counts_.resize(static_cast<std::size_t>(vocabulary_->size()));
  for (const auto& line : splits[0])
    for (const std::string& word : line) ++counts_[static_cast<std::size_t>(vocabulary_->id(word))];
  counts_[Vocabulary::unknown] = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) splits_[i] = encoded(splits[i]);
  require<UserError>(size(Split::train) > 0,
                     "{}: no line has two words that occur task.min_count = {} times",
                     options_.data.empty() ? options_.train : options_.data, options_.min_count);
  count_up();
}

StaticEmbedding::StaticEmbedding(const Config& config, const Vocabularies& vocabularies)
    : options_(config.task),
      max_length_(config.model.max_length),
      vocabulary_(token_list(vocabularies, "tokens")) {
  for (const std::string& text : token_list(vocabularies, "counts"))
    counts_.push_back(whole_number(text));
  require<FileError>(std::ssize(counts_) == vocabulary_->size(),
                     "the checkpoint's /vocabulary/counts has {} entries for {} tokens",
                     counts_.size(), vocabulary_->size());
  count_up();
}

Task::Vocabularies StaticEmbedding::vocabularies() const {
  std::vector<std::string> counts;
  for (const Index count : counts_) counts.push_back(std::to_string(count));
  return {{"tokens", vocabulary_->tokens()}, {"counts", counts}};
}

void StaticEmbedding::count_up() {
  double total = 0;
  for (const Index count : counts_)
    cumulative_.push_back(total += std::pow(static_cast<double>(count), 0.75));
  require<UserError>(total > 0, "the checkpoint's /vocabulary/counts are all 0");
  for (double& share : cumulative_) share /= total;
}

Index StaticEmbedding::size_of(const Text& text) const {
  return options_.objective == Objective::glove ? std::ssize(text.pairs) : std::ssize(text.places);
}

StaticEmbedding::Text StaticEmbedding::encoded(const Words& lines) const {
  Text text;
  for (const auto& words : lines) {
    Ids ids;
    for (const std::string& word : words)
      if (const auto id = vocabulary_->id(word); id != Vocabulary::unknown) ids.push_back(id);
    if (ids.size() < 2) continue;
    for (Index i = 0; i < std::ssize(ids); ++i) text.places.emplace_back(std::ssize(text.lines), i);
    text.lines.push_back(std::move(ids));
  }
  if (options_.objective == Objective::glove) text.pairs = pairs_of(text.lines);
  return text;
}

std::vector<StaticEmbedding::Pair> StaticEmbedding::pairs_of(const std::vector<Ids>& lines) const {
  std::map<std::pair<std::int32_t, std::int32_t>, double> counts;
  for (const Ids& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i)
      for (std::size_t d = 1; d <= static_cast<std::size_t>(options_.window) && d <= i; ++d) {
        const double count = 1 / static_cast<double>(d);
        counts[{line[i], line[i - d]}] += count;
        counts[{line[i - d], line[i]}] += count;
      }
  std::vector<Pair> pairs;
  pairs.reserve(counts.size());
  for (const auto& [words, count] : counts) pairs.push_back({words.first, words.second, count});
  return pairs;
}

std::int32_t StaticEmbedding::negative(const Random& random, std::uint64_t index) const {
  const auto found = std::ranges::upper_bound(cumulative_, random.uniform(index));
  return static_cast<std::int32_t>(std::min(found, cumulative_.end() - 1) - cumulative_.begin());
}

StaticEmbedding::Result StaticEmbedding::window_loss(const Network& network, const Text& text,
                                                     std::span<const Index> places,
                                                     Context& context) const {
  std::vector<Ids> inputs;
  Ids candidates;  // each target, followed by its negatives
  std::vector<double> truth;
  for (const Index place : places) {
    // In evaluation a function of the word alone, so that the loss does not depend on the batches.
    const Random random = context.training()
                              ? context.next_random()
                              : Random(0, Purpose::sampling, static_cast<std::uint64_t>(place));
    std::uint64_t drawn = 0;
    const auto [line_index, at] = text.places[static_cast<std::size_t>(place)];
    const Ids& line = text.lines[static_cast<std::size_t>(line_index)];
    const Index reach = 1 + static_cast<Index>(random.bits(drawn++)) % options_.window;
    const auto add = [&](Ids input, std::int32_t target) {
      inputs.push_back(std::move(input));
      candidates.push_back(target);
      truth.push_back(1);
      for (Index j = 0; j < options_.negatives; ++j) {
        candidates.push_back(negative(random, drawn++));
        truth.push_back(0);
      }
    };
    Ids neighbours;
    for (Index i = std::max<Index>(at - reach, 0); i <= std::min(at + reach, std::ssize(line) - 1);
         ++i)
      if (i != at) neighbours.push_back(line[static_cast<std::size_t>(i)]);
    const std::int32_t word = line[static_cast<std::size_t>(at)];
    if (options_.objective == Objective::cbow)
      add(neighbours, word);
    else
      for (const auto neighbour : neighbours) add({word}, neighbour);
  }
  const Index count = std::ssize(inputs), choices = 1 + options_.negatives;
  const TokenBatch input = pad(inputs);
  const Tensor x =
      masked_mean(embedding(network.model->embedding_table(), input.ids), input.lengths);
  const Tensor y = embedding(network.head->weight, Indices(candidates, {count, choices}));
  const Tensor scores = reshape(matmul(y, reshape(x, {count, -1, 1})), {count, choices});
  const Tensor targets = Tensor::from(truth, scores.shape(), scores.dtype());
  const Tensor loss =
      binary_cross_entropy_with_logits(scores, targets) * static_cast<double>(choices);
  Result result{{loss, count}};
  const auto values = scores.values();
  for (auto row = values.begin(); row != values.end(); row += choices)
    result.right += std::all_of(row + 1, row + choices, [&](double s) { return s < *row; });
  return result;
}

StaticEmbedding::Result StaticEmbedding::glove_loss(const Network& network, const Text& text,
                                                    std::span<const Index> pairs) const {
  Ids words, neighbours;
  std::vector<double> logs, weights;
  for (const Index i : pairs) {
    const Pair& pair = text.pairs[static_cast<std::size_t>(i)];
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
  return {{mean(Tensor::from(weights, {count}, products.dtype()) * errors * errors), count}};
}

StaticEmbedding::Result StaticEmbedding::loss(const Network& network, const Text& text,
                                              std::span<const Index> examples,
                                              Context& context) const {
  return options_.objective == Objective::glove ? glove_loss(network, text, examples)
                                                : window_loss(network, text, examples, context);
}

BatchLoss StaticEmbedding::loss(const Network& network, std::span<const Index> examples,
                                Context& context) const {
  return loss(network, text(Split::train), examples, context).loss;
}

Evaluation StaticEmbedding::evaluate(const Network& network, const Text& text) const {
  double right = 0, targets = 0;
  const auto measure = [&](std::span<const Index> examples, Context& context) {
    const Result part = loss(network, text, examples, context);
    right += part.right;
    targets += static_cast<double>(part.loss.targets);
    return part.loss;
  };
  Evaluation evaluation;
  evaluation.count = size_of(text);
  evaluation.loss = mean_loss(evaluation.count, evaluation_batch, measure);
  if (options_.objective == Objective::glove)
    evaluation.metrics = {{"error", std::sqrt(evaluation.loss)}};
  else
    evaluation.metrics = {{"accuracy", right / std::max(targets, 1.0)}};
  evaluation.score = -evaluation.loss;
  return evaluation;
}

Evaluation StaticEmbedding::evaluate(const Network& network, Split split) const {
  return evaluate(network, text(split));
}

Evaluation StaticEmbedding::evaluate(const Network& network,
                                     const std::filesystem::path& file) const {
  return evaluate(network, encoded(read_words(file.string())));
}

Sentence StaticEmbedding::read(std::string_view text) const {
  return read_sentence(text, *vocabulary_, max_length_);
}

std::vector<Prediction> StaticEmbedding::predict(const Network&, std::string_view) const {
  throw UserError("a model of static embeddings predicts nothing; qkv embed shows its vectors");
}

}  // namespace qkv
