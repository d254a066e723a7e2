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
#include "datasets/text_file.h"
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

/// The number of each token's letters, without the ending of a stem.
std::vector<double> letters_of(const Vocabulary& vocabulary) {
  std::vector<double> letters;
  for (std::string_view token : vocabulary.tokens()) {
    if (token.ends_with(stem_ending)) token.remove_suffix(stem_ending.size());
    letters.push_back(0);
    for_each_character(token, [&](std::string_view) { ++letters.back(); });
  }
  return letters;
}

/// The squared inverse frequency of each token in a text, as a logarithm.
std::vector<double> rarity_in(const std::filesystem::path& text, const Tokenizer& tokenizer) {
  std::vector<double> counts(static_cast<std::size_t>(tokenizer.vocabulary().size()), 0.5);
  double all = 0;
  std::vector<std::int32_t> ids;
  ReadCallback silent;
  for_each_line(text, silent, [&](std::size_t, const std::string& line) {
    ids.clear();
    tokenizer.encode(line, ids);
    for (const std::int32_t id : ids) ++counts[static_cast<std::size_t>(id)];
    all += static_cast<double>(ids.size());
  });
  require<UserError>(all > 0, "task.background: {} has no words", text.string());
  for (double& count : counts) count = std::pow(std::log(all / count), 2);
  return counts;
}

/// For each token the first in the vocabulary that begins with the same `length` letters.
std::vector<std::int32_t> first_with_stem(const Vocabulary& vocabulary, int length) {
  std::vector<std::int32_t> result;
  std::unordered_map<std::string_view, std::int32_t> first;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view stem = stem_of(vocabulary.token(id), length);
    const bool reserved = id < vocabulary.reserved();
    result.push_back(reserved ? id : first.emplace(stem, id).first->second);
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

/// Each head to its window.
void attend_to_windows(AttentionPositions& positions, std::span<const Window> windows,
                       Index max_distance) {
  const auto values = parameters(positions).front().parameter->mutable_data<float>();
  for (std::size_t head = 0; head < windows.size(); ++head) {
    if (windows[head] == Window()) continue;
    for (Index distance = 1 - max_distance; distance < max_distance; ++distance)
      if (windows[head].has(distance))
        values[static_cast<std::size_t>(distance + max_distance) * windows.size() + head] =
            window_bias;
  }
}

/// What is counted of the training examples.
struct Counted {
  const EncodedSentences& examples;
  Index labels;
  std::vector<double> importance;                    ///< of each token in wide windows
  std::vector<std::vector<std::int32_t>> groupings;  ///< of tokens: by the word, by each stem

  /// The mean number of words in a window.
  double words_in(Window window) const {
    return mean_in(window, examples, std::vector<double>(importance.size(), 1));
  }

  /// The weight of each token in a window; their mean over the window's words is 1.
  std::vector<double> weights_in(Window window) const {
    std::vector<double> weights(importance.size(), 1);
    if (!window.is_wide()) return weights;
    const double words = words_in(window), sum = mean_in(window, examples, importance);
    if (sum > 0)
      std::ranges::transform(importance, weights.begin(),
                             [=](double x) { return x * words / sum; });
    return weights;
  }

  /// The weighted log ratios of each token, [V, C].
  std::vector<double> ratios_in(Window window) const {
    std::vector<double> ratios(importance.size() * static_cast<std::size_t>(labels));
    for (const auto& groups : groupings)
      add_log_count_ratios(ratios, groups, examples, labels, window);
    const std::vector<double> weights = weights_in(window);
    for (std::size_t i = 0; i < ratios.size(); ++i)
      ratios[i] *= weights[i / static_cast<std::size_t>(labels)];
    return ratios;
  }
};

/// Puts values [rows, columns] into the first columns of a head's in a table [rows, D].
void put_into_head(Parameter& table, std::span<const double> values, Index columns, Index begin) {
  const Index width = table.shape()[1];
  const auto to = table.mutable_data<float>();
  for (Index i = 0; i < std::ssize(values); ++i)
    to[static_cast<std::size_t>(i / columns * width + begin + i % columns)] =
        static_cast<float>(values[static_cast<std::size_t>(i)]);
}

void put_priors(Parameter& bias, const EncodedSentences& examples) {
  const auto priors = bias.mutable_data<float>();
  std::vector<double> counts(priors.size());
  for (const auto& question : examples.questions)
    ++counts[static_cast<std::size_t>(question.answer)];
  for (std::size_t c = 0; c < priors.size(); ++c)
    priors[c] =
        static_cast<float>(confidence * std::log(counts[c] / static_cast<double>(examples.size())));
}

}  // namespace

void start_as_naive_bayes(Network& network, const ModelOptions& options, const Tokenizer& tokenizer,
                          const EncodedSentences& examples, Index labels,
                          const std::filesystem::path& background) {
  const auto attention = modules<MultiHeadAttention>(network);
  const bool attends = !attention.empty(), about_a_word = examples.questions.front().index >= 0;
  const Index heads = attends ? options.heads : 1, width = options.width / heads;
  require<UserError>(labels <= width,
                     "model.init \"naive-bayes\" needs heads at least as wide as there are labels, "
                     "{}; got model.width / model.heads = {}",
                     labels, width);
  std::vector<Window> windows(static_cast<std::size_t>(heads));
  if (attends) {
    MultiHeadAttention& layer = *attention[0].second;
    if (layer.w_q) layer.w_q->weight.assign(Tensor::zeros(layer.w_q->weight.shape()));
    make_identity(layer.w_v->weight);
    make_identity(layer.w_o->weight);
    if (layer.positions && about_a_word && heads > 1) {
      for (Index head = 0; head < heads; ++head)
        windows[static_cast<std::size_t>(head)] = window_of(head, options.max_distance);
      attend_to_windows(*layer.positions, windows, options.max_distance);
    }
  }
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  Counted counted{examples,
                  labels,
                  background.empty() ? letters_of(vocabulary) : rarity_in(background, tokenizer),
                  {{first_with_stem(vocabulary, std::numeric_limits<int>::max())}}};
  for (const int length : stem_lengths)
    counted.groupings.push_back(first_with_stem(vocabulary, length));
  for (Index head = 0; head < heads; ++head) {
    const Window window = windows[static_cast<std::size_t>(head)];
    put_into_head(network.model->embedding.weight, counted.ratios_in(window), labels, head * width);
    const auto equal = std::ranges::count(windows, window);
    // A sentence's vector is the mean of its words' and of what attention adds to each.
    const auto paths = static_cast<double>(attends && !about_a_word ? 2 * equal : equal);
    const double scale = confidence * counted.words_in(window) / paths;
    std::vector<double> weights(static_cast<std::size_t>(labels * width));
    for (Index c = 0; c < labels; ++c) weights[static_cast<std::size_t>(c * (width + 1))] = scale;
    put_into_head(network.head->weight, weights, width, head * width);
  }
  put_priors(*network.head->bias, examples);
}

}  // namespace qkv
