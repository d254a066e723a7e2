#include "train/tasks/naive_bayes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>

#include "datasets/text.h"
#include "layers/attention.h"

namespace qkv {
namespace {

constexpr double smoothing = 0.05;
/// Words are not independent, and naive Bayes is too sure: training starts from logits this much
/// smaller, so that examples it has right still have gradients.
constexpr double confidence = 0.2;
/// Of scores inside a window: at 30 words outside, 10 inside get 99 % of the weight.
constexpr double window_bias = 6;
/// A word counts whole, and by the letters it begins with.
constexpr std::array stem_lengths = {std::numeric_limits<int>::max(), 4, 6};

/// The distances at which a head attends, from the word that is asked about.
struct Window {
  Index first = std::numeric_limits<Index>::min(), last = std::numeric_limits<Index>::max();

  bool has(Index distance) const { return first <= distance && distance <= last; }
  /// Whether it tells the topic rather than how the word is used.
  bool is_wide() const { return has(-3) && has(3); }
  bool operator==(const Window&) const = default;
};

/// Heads take turns.
Window window_of(Index head, Index max_distance) {
  const Index near = max_distance - 1;
  const std::array<Window, 8> windows = {
      {{}, {-near, near}, {-2, -1}, {1, 2}, {-1, -1}, {1, 1}, {-2, -2}, {2, 2}}};
  return windows[static_cast<std::size_t>(head) % windows.size()];
}

std::vector<double> examples_by_label(const EncodedSentences& examples, Index labels) {
  std::vector<double> counts(static_cast<std::size_t>(labels));
  for (const auto& question : examples.questions)
    ++counts[static_cast<std::size_t>(question.answer)];
  return counts;
}

/// The words of a sentence in a window around the one that is asked about, or all if `asked` is
/// negative; without that word itself.
std::vector<std::int32_t> words_in(Window window, std::span<const std::int32_t> ids, Index asked) {
  std::vector<std::int32_t> words;
  for (Index i = 0; i < std::ssize(ids); ++i)
    if (asked < 0 || (i != asked && window.has(i - asked)))
      words.push_back(ids[static_cast<std::size_t>(i)]);
  return words;
}

/// What the words of each example that are in a window have of something, as a mean over the
/// examples.
double mean_in(Window window, const EncodedSentences& examples, std::span<const double> of_word) {
  double sum = 0;
  for (Index i = 0; i < examples.size(); ++i)
    for (const std::int32_t word : words_in(window, examples.sentences[i],
                                            examples.questions[static_cast<std::size_t>(i)].index))
      sum += of_word[static_cast<std::size_t>(word)];
  return sum / static_cast<double>(examples.size());
}

std::vector<double> letters_of_words(const Vocabulary& vocabulary) {
  std::vector<double> letters(static_cast<std::size_t>(vocabulary.size()));
  for (std::int32_t id = 0; id < vocabulary.size(); ++id)
    for (std::string_view rest = vocabulary.token(id); !rest.empty();
         rest.remove_prefix(first_code_point(rest).length))
      ++letters[static_cast<std::size_t>(id)];
  return letters;
}

/// The weight of each word in a window; their mean over the window's words is 1.
std::vector<double> weights_in(Window window, const EncodedSentences& examples,
                               std::span<const double> letters) {
  std::vector<double> weights(letters.size(), 1);
  const double words = mean_in(window, examples, weights), sum = mean_in(window, examples, letters);
  if (window.is_wide() && sum > 0)
    std::ranges::transform(letters, weights.begin(), [=](double n) { return n * words / sum; });
  return weights;
}

/// For each word the first in the vocabulary that begins with the same `length` letters.
std::vector<std::int32_t> stems(const Vocabulary& vocabulary, int length) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(vocabulary.size()));
  std::unordered_map<std::string_view, std::int32_t> first;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view word = vocabulary.token(id);
    std::size_t size = 0;
    for (int i = 0; i < length && size < word.size(); ++i)
      size += first_code_point(word.substr(size)).length;
    const bool reserved = id < vocabulary.reserved();
    result[static_cast<std::size_t>(id)] =
        reserved ? id : first.emplace(word.substr(0, size), id).first->second;
  }
  return result;
}

/// Adds to `ratios`, [V, C], how much oftener than on average each word's group was in the window
/// of examples with a label, as a logarithm.
void add_log_count_ratios(std::vector<double>& ratios, std::span<const std::int32_t> groups,
                          const EncodedSentences& examples, Index labels, Window window) {
  const auto classes = static_cast<std::size_t>(labels);
  std::vector<double> counts(ratios.size()), totals(classes);
  std::set<std::int32_t> seen, left_out = {Vocabulary::padding, Vocabulary::unknown};
  for (Index i = 0; i < examples.size(); ++i) {
    const auto ids = examples.sentences[i];
    const auto [index, label] = examples.questions[static_cast<std::size_t>(i)];
    const auto answer = static_cast<std::size_t>(label);
    std::set<std::int32_t> present;
    for (const std::int32_t word : words_in(window, ids, index))
      present.insert(groups[static_cast<std::size_t>(word)]);
    for (const std::int32_t group : present)
      ++counts[static_cast<std::size_t>(group) * classes + answer];
    totals[answer] += static_cast<double>(present.size());
    seen.merge(present);
    if (index >= 0)
      left_out.insert(groups[static_cast<std::size_t>(ids[static_cast<std::size_t>(index)])]);
  }
  for (double& total : totals) total += smoothing * static_cast<double>(seen.size());
  std::vector<double> logs(classes);
  for (std::size_t word = 0; word < groups.size(); ++word) {
    if (!seen.contains(groups[word]) || left_out.contains(groups[word])) continue;
    const auto row = std::span(counts).subspan(static_cast<std::size_t>(groups[word]) * classes);
    for (std::size_t c = 0; c < classes; ++c) logs[c] = std::log((row[c] + smoothing) / totals[c]);
    const double mean =
        std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(classes);
    for (std::size_t c = 0; c < classes; ++c) ratios[word * classes + c] += logs[c] - mean;
  }
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
                          const Vocabulary& vocabulary, const EncodedSentences& examples,
                          Index labels) {
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
  const auto vectors = network.model->embedding.weight.mutable_data<float>();
  const auto weights = network.head->weight.mutable_data<float>();
  std::array<std::vector<std::int32_t>, stem_lengths.size()> groupings;
  std::ranges::transform(stem_lengths, groupings.begin(),
                         [&](int length) { return stems(vocabulary, length); });
  const std::vector<double> letters = letters_of_words(vocabulary);
  const auto window = [&](Index head) {
    return windows ? window_of(head, options.max_distance) : Window();
  };
  for (Index head = 0; head < heads; ++head) {
    std::vector<double> ratios(static_cast<std::size_t>(vocabulary.size() * labels));
    for (const auto& groups : groupings)
      add_log_count_ratios(ratios, groups, examples, labels, window(head));
    Index equal = 0;
    for (Index other = 0; other < heads; ++other) equal += window(other) == window(head);
    // A sentence's vector is the mean of its words' and of what attention adds to each.
    const Index paths = attends && !about_a_word ? 2 * equal : equal;
    const std::vector<double> of_word = weights_in(window(head), examples, letters);
    const double scale =
        confidence * mean_in(window(head), examples, of_word) / static_cast<double>(paths);
    for (Index c = 0; c < labels; ++c) {
      for (Index word = 0; word < vocabulary.size(); ++word)
        vectors[static_cast<std::size_t>(word * options.width + head * width + c)] =
            static_cast<float>(of_word[static_cast<std::size_t>(word)] *
                               ratios[static_cast<std::size_t>(word * labels + c)]);
      for (Index other = 0; other < width; ++other)
        weights[static_cast<std::size_t>(c * options.width + head * width + other)] =
            c == other ? static_cast<float>(scale) : 0;
    }
  }
  const auto priors = network.head->bias->mutable_data<float>();
  const auto frequencies = examples_by_label(examples, labels);
  for (std::size_t c = 0; c < priors.size(); ++c)
    priors[c] = static_cast<float>(confidence *
                                   std::log(frequencies[c] / static_cast<double>(examples.size())));
}

}  // namespace qkv
