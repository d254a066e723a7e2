#include "train/tasks/static_embedding.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

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
  require<UserError>(error == std::errc() && end == text.data() + text.size() && number >= 0,
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
  require<UserError>(std::ssize(counts_) == vocabulary_->size(),
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

StaticEmbedding::Ids StaticEmbedding::negatives(std::size_t count, const Random& random) const {
  Ids ids(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto found = std::ranges::upper_bound(cumulative_, random.uniform(i));
    ids[i] =
        static_cast<std::int32_t>(std::min(found, cumulative_.end() - 1) - cumulative_.begin());
  }
  return ids;
}

StaticEmbedding::Result StaticEmbedding::window_loss(const Network& network, const Text& text,
                                                     std::span<const Index> places,
                                                     Context& context) const {
  const Random widths = context.next_random(), noise = context.next_random();
  std::vector<Ids> inputs;
  Ids outputs;
  for (std::size_t k = 0; k < places.size(); ++k) {
    const auto [line_index, at] = text.places[static_cast<std::size_t>(places[k])];
    const Ids& line = text.lines[static_cast<std::size_t>(line_index)];
    const Index reach = 1 + static_cast<Index>(widths.bits(k)) % options_.window;
    Ids neighbours;
    for (Index i = std::max<Index>(at - reach, 0); i <= std::min(at + reach, std::ssize(line) - 1);
         ++i)
      if (i != at) neighbours.push_back(line[static_cast<std::size_t>(i)]);
    const std::int32_t word = line[static_cast<std::size_t>(at)];
    if (options_.objective == Objective::cbow) {
      inputs.push_back(neighbours);
      outputs.push_back(word);
    } else {
      for (const auto neighbour : neighbours)
        inputs.push_back({word}), outputs.push_back(neighbour);
    }
  }
  const Index count = std::ssize(outputs), choices = 1 + options_.negatives;
  const Ids drawn = negatives(outputs.size() * static_cast<std::size_t>(options_.negatives), noise);
  Ids candidates;
  std::vector<double> truth;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    candidates.push_back(outputs[i]);
    const auto first = drawn.begin() + static_cast<Index>(i) * options_.negatives;
    candidates.insert(candidates.end(), first, first + options_.negatives);
    for (Index j = 0; j < choices; ++j) truth.push_back(j == 0 ? 1 : 0);
  }
  const TokenBatch input = pad(inputs);
  const Tensor x =
      masked_mean(embedding(network.model->embedding_table(), input.ids), input.lengths);
  const Tensor y = embedding(network.head->weight, Indices(candidates, {count, choices}));
  const Tensor scores = reshape(matmul(y, reshape(x, {count, -1, 1})), {count, choices});
  const Tensor targets = Tensor::from(truth, scores.shape(), scores.dtype());
  Result result{binary_cross_entropy_with_logits(scores, targets) * static_cast<double>(choices), 0,
                static_cast<double>(count)};
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
  return {mean(Tensor::from(weights, {count}, products.dtype()) * errors * errors), 0,
          static_cast<double>(count)};
}

StaticEmbedding::Result StaticEmbedding::loss(const Network& network, const Text& text,
                                              std::span<const Index> examples,
                                              Context& context) const {
  return options_.objective == Objective::glove ? glove_loss(network, text, examples)
                                                : window_loss(network, text, examples, context);
}

BatchLoss StaticEmbedding::loss(const Network& network, std::span<const Index> examples,
                                Context& context) const {
  const Result result = loss(network, text(Split::train), examples, context);
  return {result.loss, static_cast<Index>(result.total)};
}

Evaluation StaticEmbedding::evaluate(const Network& network, const Text& text) const {
  const NoGrad no_grad;
  Context context;
  Evaluation evaluation;
  evaluation.count = size_of(text);
  double right = 0, total = 0;
  for (Index begin = 0; begin < evaluation.count; begin += evaluation_batch) {
    std::vector<Index> examples(
        static_cast<std::size_t>(std::min(evaluation_batch, evaluation.count - begin)));
    std::iota(examples.begin(), examples.end(), begin);
    const Result part = loss(network, text, examples, context);
    evaluation.loss += part.loss.item() * static_cast<double>(examples.size());
    right += part.right;
    total += part.total;
  }
  if (evaluation.count) evaluation.loss /= static_cast<double>(evaluation.count);
  if (options_.objective == Objective::glove)
    evaluation.metrics = {{"error", std::sqrt(evaluation.loss)}};
  else
    evaluation.metrics = {{"accuracy", right / std::max(total, 1.0)}};
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
