#include "train/tasks/naive_bayes.h"

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "layers/attention.h"

namespace qkv {
namespace {

constexpr double smoothing = 0.05;
/// Words are not independent, and naive Bayes is too sure: training starts from logits this much
/// smaller, so that examples it has right still have gradients.
constexpr double confidence = 0.2;
/// Of scores inside a window: at 30 words outside, 10 inside get 99 % of the weight.
constexpr double window_bias = 6;

/// The distances at which a head attends, from the word that is asked about.
struct Window {
  Index first = std::numeric_limits<Index>::min(), last = std::numeric_limits<Index>::max();

  bool has(Index distance) const { return first <= distance && distance <= last; }
  bool operator==(const Window&) const = default;
};

/// Heads take turns.
Window window_of(Index head, Index max_distance) {
  const std::array<Window, 5> windows = {
      {{}, {1 - max_distance, max_distance - 1}, {-2, 2}, {-1, -1}, {1, 1}}};
  return windows[static_cast<std::size_t>(head) % windows.size()];
}

/// What naive Bayes knows of the words that a head attends to.
struct Counts {
  std::vector<double> ratios;  ///< log-count ratios [V, C]
  double words = 0;            ///< attended to, mean over the examples
};

std::vector<double> examples_by_label(const EncodedSentences& examples, Index labels) {
  std::vector<double> counts(static_cast<std::size_t>(labels));
  for (const auto& question : examples.questions)
    ++counts[static_cast<std::size_t>(question.answer)];
  return counts;
}

/// The words of a sentence in a window around the one that is asked about, or all if `asked` is
/// negative; without that word itself.
std::multiset<std::int32_t> words_in(Window window, std::span<const std::int32_t> ids,
                                     Index asked) {
  std::multiset<std::int32_t> words;
  for (Index i = 0; i < std::ssize(ids); ++i)
    if (asked < 0 || (i != asked && window.has(i - asked)))
      words.insert(ids[static_cast<std::size_t>(i)]);
  return words;
}

Counts count(const EncodedSentences& examples, Index vocabulary, Index labels, Window window) {
  const auto classes = static_cast<std::size_t>(labels);
  Counts result{.ratios = std::vector<double>(static_cast<std::size_t>(vocabulary) * classes)};
  std::vector<double> totals(classes);
  std::set<std::int32_t> seen, asked = {Vocabulary::padding, Vocabulary::unknown};
  for (Index i = 0; i < examples.size(); ++i) {
    const auto ids = examples.sentences[i];
    const auto [index, label] = examples.questions[static_cast<std::size_t>(i)];
    const auto words = words_in(window, ids, index);
    const auto answer = static_cast<std::size_t>(label);
    for (const std::int32_t word : std::set(words.begin(), words.end())) {
      ++result.ratios[static_cast<std::size_t>(word) * classes + answer];
      ++totals[answer];
      seen.insert(word);
    }
    result.words += static_cast<double>(words.size()) / static_cast<double>(examples.size());
    if (index >= 0) asked.insert(ids[static_cast<std::size_t>(index)]);
  }
  for (double& total : totals) total += smoothing * static_cast<double>(seen.size());
  for (Index word = 0; word < vocabulary; ++word) {
    const auto row =
        std::span(result.ratios).subspan(static_cast<std::size_t>(word) * classes, classes);
    const auto id = static_cast<std::int32_t>(word);
    const bool known = seen.contains(id) && !asked.contains(id);
    double mean = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      row[c] = known ? std::log((row[c] + smoothing) / totals[c]) : 0;
      mean += row[c] / static_cast<double>(classes);
    }
    for (double& ratio : row) ratio -= mean;
  }
  return result;
}

void make_identity(Parameter& square) {
  const Index size = square.shape()[0];
  std::vector<double> values(static_cast<std::size_t>(size * size));
  for (Index i = 0; i < size; ++i) values[static_cast<std::size_t>(i * (size + 1))] = 1;
  square.assign(Tensor::from(values, square.shape()));
}

void attend_to_windows(AttentionPositions& positions, Index max_distance) {
  Parameter& bias = *parameters(positions).front().parameter;
  const Index heads = bias.shape()[1];
  const auto values = bias.mutable_data<float>();
  for (Index head = 0; head < heads; ++head) {
    const Window window = window_of(head, max_distance);
    if (window == Window()) continue;
    for (Index distance = 1 - max_distance; distance < max_distance; ++distance)
      if (window.has(distance))
        values[static_cast<std::size_t>((distance + max_distance) * heads + head)] = window_bias;
  }
}

}  // namespace

void start_as_naive_bayes(Network& network, const ModelOptions& options,
                          const EncodedSentences& examples, Index labels) {
  const auto attention = modules<MultiHeadAttention>(network);
  const bool attends = !attention.empty(), about_a_word = examples.questions.front().index >= 0;
  const Index heads = attends ? options.heads : 1, width = options.width / heads;
  require<UserError>(labels <= width,
                     "model.init \"naive-bayes\" needs heads at least as wide as there are labels, "
                     "{}; got model.width / model.heads = {}",
                     labels, width);
  const bool windows = attends && attention[0].second->positions && about_a_word && heads > 1;
  if (attends) {
    MultiHeadAttention& layer = *attention[0].second;
    if (layer.w_q) layer.w_q->weight.assign(Tensor::zeros(layer.w_q->weight.shape()));
    make_identity(layer.w_v->weight);
    make_identity(layer.w_o->weight);
    if (windows) attend_to_windows(*layer.positions, options.max_distance);
  }
  Parameter& table = network.model->embedding.weight;
  const Index vocabulary = table.shape()[0];
  const auto vectors = table.mutable_data<float>();
  const auto weights = network.head->weight.mutable_data<float>();
  const auto window = [&](Index head) {
    return windows ? window_of(head, options.max_distance) : Window();
  };
  for (Index head = 0; head < heads; ++head) {
    const Counts counts = count(examples, vocabulary, labels, window(head));
    Index equal = 0;
    for (Index other = 0; other < heads; ++other) equal += window(other) == window(head);
    // A sentence's vector is the mean of its words' and of what attention adds to each.
    const Index paths = attends && !about_a_word ? 2 * equal : equal;
    for (Index c = 0; c < labels; ++c) {
      for (Index word = 0; word < vocabulary; ++word)
        vectors[static_cast<std::size_t>(word * options.width + head * width + c)] =
            static_cast<float>(counts.ratios[static_cast<std::size_t>(word * labels + c)]);
      for (Index other = 0; other < labels; ++other)
        weights[static_cast<std::size_t>(c * options.width + head * width + other)] =
            c == other ? static_cast<float>(confidence * counts.words / static_cast<double>(paths))
                       : 0;
    }
  }
  const auto priors = network.head->bias->mutable_data<float>();
  const auto frequencies = examples_by_label(examples, labels);
  for (std::size_t c = 0; c < priors.size(); ++c)
    priors[c] = static_cast<float>(confidence *
                                   std::log(frequencies[c] / static_cast<double>(examples.size())));
}

}  // namespace qkv
