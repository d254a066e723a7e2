#include "train/tasks/naive_bayes.h"

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
constexpr double confidence = 0.1;
/// Of scores inside a window: at 30 words outside, 10 inside get 99 % of the weight.
constexpr double window_bias = 6;
constexpr int stem_length = 5;

/// The distances at which a head attends, from the word that is asked about.
struct Window {
  Index first = std::numeric_limits<Index>::min(), last = std::numeric_limits<Index>::max();

  bool has(Index distance) const { return first <= distance && distance <= last; }
  double score(Index distance) const { return has(distance) ? window_bias : 0; }
  bool operator==(const Window&) const = default;
};

/// Heads take turns.
Window window_of(Index head, Index max_distance) {
  const Index far = max_distance - 1, near = far / 2;
  const std::array<Window, 8> windows = {
      {{}, {-far, far}, {-near, near}, {-2, 2}, {-1, -1}, {1, 1}, {-2, -2}, {2, 2}}};
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

/// Of words in a window, the mean over the examples.
double mean_words_in(Window window, const EncodedSentences& examples) {
  double words = 0;
  for (Index i = 0; i < examples.size(); ++i)
    words += static_cast<double>(words_in(window, examples.sentences[i],
                                          examples.questions[static_cast<std::size_t>(i)].index)
                                     .size());
  return words / static_cast<double>(examples.size());
}

std::vector<std::int32_t> every_word(const Vocabulary& vocabulary) {
  std::vector<std::int32_t> words(static_cast<std::size_t>(vocabulary.size()));
  std::iota(words.begin(), words.end(), 0);
  return words;
}

/// For each word the first in the vocabulary with the same stem.
std::vector<std::int32_t> stems(const Vocabulary& vocabulary) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(vocabulary.size()));
  std::unordered_map<std::string_view, std::int32_t> first;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view word = vocabulary.token(id);
    std::size_t size = 0;
    for (int i = 0; i < stem_length && size < word.size(); ++i)
      size += first_code_point(word.substr(size)).length;
    const bool reserved = id < vocabulary.reserved();
    result[static_cast<std::size_t>(id)] =
        reserved ? id : first.emplace(word.substr(0, size), id).first->second;
  }
  return result;
}

std::set<std::int32_t> groups_in(Window window, std::span<const std::int32_t> groups,
                                 std::span<const std::int32_t> ids, Index asked) {
  std::set<std::int32_t> present;
  for (const std::int32_t word : words_in(window, ids, asked))
    present.insert(groups[static_cast<std::size_t>(word)]);
  return present;
}

/// In how many examples of each label the words' groups are in a window.
class GroupCounts {
 public:
  GroupCounts(std::span<const std::int32_t> groups, const EncodedSentences& examples, Index labels,
              Window window)
      : labels_(static_cast<std::size_t>(labels)),
        counts_(groups.size() * labels_),
        totals_(labels_),
        left_out_(groups.size()) {
    left_out_[Vocabulary::padding] = left_out_[Vocabulary::unknown] = true;
    std::set<std::int32_t> seen;
    for (Index i = 0; i < examples.size(); ++i) {
      const auto ids = examples.sentences[i];
      const auto [index, label] = examples.questions[static_cast<std::size_t>(i)];
      const auto answer = static_cast<std::size_t>(label);
      std::set<std::int32_t> present = groups_in(window, groups, ids, index);
      for (const std::int32_t group : present)
        ++counts_[static_cast<std::size_t>(group) * labels_ + answer];
      totals_[answer] += static_cast<double>(present.size());
      seen.merge(present);
      if (index < 0) continue;
      const auto asked = static_cast<std::size_t>(ids[static_cast<std::size_t>(index)]);
      left_out_[static_cast<std::size_t>(groups[asked])] = true;
    }
    smoothing_of_all_ = smoothing * static_cast<double>(seen.size());
  }

  /// log p(group | label) minus its mean over the labels; zeros for a group that was not seen and
  /// for one of a word that is asked about.
  std::vector<double> log_ratios(std::int32_t group) const { return log_ratios(group, labels_, 0); }

  /// The same without the counts of one example, which has the label and `own` groups, this one
  /// among them.
  std::vector<double> log_ratios_without(std::int32_t group, std::int32_t label,
                                         std::size_t own) const {
    return log_ratios(group, static_cast<std::size_t>(label), static_cast<double>(own));
  }

 private:
  std::vector<double> log_ratios(std::int32_t group, std::size_t label, double own) const {
    std::vector<double> logs(labels_);
    if (left_out_[static_cast<std::size_t>(group)]) return logs;
    double seen = 0, sum = 0;
    for (std::size_t c = 0; c < labels_; ++c) {
      const double count = counts_[static_cast<std::size_t>(group) * labels_ + c] - (c == label);
      const double total = totals_[c] - (c == label ? own : 0);
      seen += count;
      sum += logs[c] = std::log((count + smoothing) / (total + smoothing_of_all_));
    }
    const double mean = sum / static_cast<double>(labels_);
    for (double& value : logs) value = seen > 0 ? value - mean : 0;
    return logs;
  }

  std::size_t labels_;
  std::vector<double> counts_;  ///< [V, C], by group
  std::vector<double> totals_;  ///< [C], over groups
  double smoothing_of_all_ = 0;
  std::vector<bool> left_out_;
};

void make_identity(Parameter& square) {
  const Index size = square.shape()[0];
  std::vector<double> values(static_cast<std::size_t>(size * size));
  for (Index i = 0; i < size; ++i) values[static_cast<std::size_t>(i * (size + 1))] = 1;
  square.assign(Tensor::from(values, square.shape()));
}

/// The scores' biases, [2 max_distance + 1, heads], are those of the heads' windows.
void attend_to(std::span<const Window> windows, AttentionPositions& positions) {
  Parameter& bias = *parameters(positions).front().parameter;
  const Index heads = bias.shape()[1], max_distance = bias.shape()[0] / 2;
  const auto values = bias.mutable_data<float>();
  for (Index head = 0; head < heads; ++head) {
    const Window window = windows[static_cast<std::size_t>(head)];
    if (window == Window()) continue;
    for (Index distance = -max_distance; distance <= max_distance; ++distance)
      values[static_cast<std::size_t>((distance + max_distance) * heads + head)] =
          static_cast<float>(window.score(distance));
  }
}

bool attends(const ModelOptions& options) {
  return options.kind == ModelKind::encoder;
}

/// Of each head.
std::vector<Window> windows_of(const ModelOptions& options, const EncodedSentences& examples) {
  std::vector<Window> windows(static_cast<std::size_t>(attends(options) ? options.heads : 1));
  if (windows.size() > 1 && options.attention == AttentionKind::learned &&
      options.position == PositionKind::relative && examples.questions.front().index >= 0)
    for (std::size_t head = 0; head < windows.size(); ++head)
      windows[head] = window_of(static_cast<Index>(head), options.max_distance);
  return windows;
}

}  // namespace

void start_as_naive_bayes(Network& network, const ModelOptions& options,
                          const Vocabulary& vocabulary, const EncodedSentences& examples,
                          Index labels) {
  const std::vector<Window> windows = windows_of(options, examples);
  const Index heads = std::ssize(windows), width = options.width / heads;
  require<UserError>(labels <= width,
                     "model.init \"naive-bayes\" needs heads at least as wide as there are labels, "
                     "{}; got model.width / model.heads = {}",
                     labels, width);
  if (attends(options)) {
    MultiHeadAttention& layer = *modules<MultiHeadAttention>(network)[0].second;
    if (layer.w_q) layer.w_q->weight.assign(Tensor::zeros(layer.w_q->weight.shape()));
    make_identity(layer.w_v->weight);
    make_identity(layer.w_o->weight);
    if (layer.positions) attend_to(windows, *layer.positions);
  }
  const auto vectors = network.model->embedding.weight.mutable_data<float>();
  const auto weights = network.head->weight.mutable_data<float>();
  const auto groupings = {every_word(vocabulary), stems(vocabulary)};
  // A sentence's vector is the mean of its words' and of what attention adds to each.
  const Index paths = attends(options) && examples.questions.front().index < 0 ? 2 : 1;
  for (Index head = 0; head < heads; ++head) {
    const Window window = windows[static_cast<std::size_t>(head)];
    const auto at = [&](Index row, Index c) {
      return static_cast<std::size_t>(row * options.width + head * width + c);
    };
    for (Index word = 0; word < vocabulary.size(); ++word)
      for (Index c = 0; c < labels; ++c) vectors[at(word, c)] = 0;
    for (const auto& groups : groupings) {
      const GroupCounts counts(groups, examples, labels, window);
      for (Index word = 0; word < vocabulary.size(); ++word) {
        const auto ratios = counts.log_ratios(groups[static_cast<std::size_t>(word)]);
        for (Index c = 0; c < labels; ++c)
          vectors[at(word, c)] += static_cast<float>(ratios[static_cast<std::size_t>(c)]);
      }
    }
    const double scale = confidence * mean_words_in(window, examples) /
                         static_cast<double>(paths * std::ranges::count(windows, window));
    for (Index c = 0; c < labels; ++c)
      for (Index other = 0; other < width; ++other)
        weights[at(c, other)] = c == other ? static_cast<float>(scale) : 0;
  }
  const auto priors = network.head->bias->mutable_data<float>();
  const auto frequencies = examples_by_label(examples, labels);
  for (std::size_t c = 0; c < priors.size(); ++c)
    priors[c] = static_cast<float>(confidence *
                                   std::log(frequencies[c] / static_cast<double>(examples.size())));
}

std::vector<double> own_logits(const ModelOptions& options, const Vocabulary& vocabulary,
                               const EncodedSentences& examples, Index labels) {
  const auto classes = static_cast<std::size_t>(labels);
  std::vector<double> logits(static_cast<std::size_t>(examples.size()) * classes);
  const bool about_a_word = examples.questions.front().index >= 0;
  if (!attends(options) && about_a_word) return logits;  // the word's own vector is zero
  const auto groupings = {every_word(vocabulary), stems(vocabulary)};
  std::vector<Window> windows;  // heads of the same share its logits
  for (const Window window : windows_of(options, examples))
    if (std::ranges::find(windows, window) == windows.end()) windows.push_back(window);
  for (const Window window : windows) {
    const double scale = confidence * mean_words_in(window, examples);
    for (const auto& groups : groupings) {
      const GroupCounts counts(groups, examples, labels, window);
      for (Index i = 0; i < examples.size(); ++i) {
        const auto ids = examples.sentences[i];
        const auto [index, label] = examples.questions[static_cast<std::size_t>(i)];
        const auto own = groups_in(window, groups, ids, index);
        double weights = 0;
        std::vector<double> sum(classes);
        for (Index j = 0; j < std::ssize(ids); ++j) {
          const double weight = window == Window() ? 1 : std::exp(window.score(j - index));
          weights += weight;
          const std::int32_t group =
              groups[static_cast<std::size_t>(ids[static_cast<std::size_t>(j)])];
          if (!own.contains(group)) continue;
          const auto with = counts.log_ratios(group),
                     without = counts.log_ratios_without(group, label, own.size());
          for (std::size_t c = 0; c < classes; ++c) sum[c] += weight * (with[c] - without[c]);
        }
        for (std::size_t c = 0; c < classes; ++c)
          logits[static_cast<std::size_t>(i) * classes + c] += scale * sum[c] / weights;
      }
    }
  }
  return logits;
}

}  // namespace qkv
