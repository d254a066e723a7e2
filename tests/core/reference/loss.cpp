#include "tests/core/reference/reference.h"

namespace qkv::tests::reference {
namespace {

enum class Mean { of_all, of_none, sum };

/// The losses, their sum or their mean.
Array reduced(const Array& losses, Mean mean_of) {
  switch (mean_of) {
    case Mean::of_none:
      return losses;
    case Mean::sum:
      return sum_over(losses, all_axes(losses));
    case Mean::of_all:
      break;
  }
  return mean_over(losses, all_axes(losses));
}

struct CrossEntropy {
  Sizes sizes;               ///< of the targets
  std::vector<int> targets;  ///< negative: the row does not count
  double smoothing = 0;
  Array weights = {1.0};  ///< of each class, or one for all
  int ignored = -1;
  Mean mean = Mean::of_all;
};

Oracle cross_entropy(const CrossEntropy& c) {
  return [=](const Arrays& x) -> Array {
    const std::size_t classes = x[0].shape().back();
    const Array costs = -log_softmax(reshaped(x[0], {c.targets.size(), classes}), 1);
    const Array weighted = costs * c.weights;
    const Array over_classes = sum_over(weighted, {1});
    Array losses = filled({c.targets.size()}, 0);
    double total_weight = 0;
    for (std::size_t row = 0; row < c.targets.size(); ++row) {
      if (c.targets[row] < 0 || c.targets[row] == c.ignored) continue;
      const auto target = static_cast<std::size_t>(c.targets[row]);
      total_weight += c.weights.size() > 1 ? c.weights(target) : c.weights(0);
      losses(row) = (1 - c.smoothing) * weighted(row, target) +
                    c.smoothing / static_cast<double>(classes) * over_classes(row);
    }
    if (c.mean == Mean::of_none) return reshaped(losses, c.sizes);
    const Array total = sum_over(losses, {0});
    return total / (c.mean == Mean::sum ? 1 : total_weight);
  };
}

Oracle binary_cross_entropy(Mean mean_of) {
  return [=](const Arrays& x) {
    const Array &p = x[0], &t = x[1];
    return reduced(-t * xt::log(p) - (1 - t) * xt::log(1 - p), mean_of);
  };
}

/// The targets are the sigmoid of the second input.
Oracle binary_cross_entropy_with_logits(Mean mean_of, const Array& pos_weight = 1.0) {
  return [=](const Arrays& x) {
    const Array t = sigmoid(x[1]);
    return reduced(pos_weight * t * softplus(-x[0]) + (1 - t) * softplus(x[0]), mean_of);
  };
}

Oracle mean_squared_error(Mean mean_of) {
  return [=](const Arrays& x) { return reduced(xt::square(x[0] - x[1]), mean_of); };
}

}  // namespace

const Oracles& loss_oracles() {
  static const Array class_weights = {0.5, 2.0, 1.25};
  static const Oracles all = {
      {"cross_entropy: one ignored", cross_entropy({.sizes = {4}, .targets = {2, 0, -1, 4}})},
      {"cross_entropy: sequences",
       cross_entropy({.sizes = {2, 3}, .targets = {2, 0, 3, 1, 1, -1}})},
      {"cross_entropy: smoothed",
       cross_entropy({.sizes = {4}, .targets = {2, 0, -1, 4}, .smoothing = 0.1})},
      {"cross_entropy: weighted",
       cross_entropy({.sizes = {4}, .targets = {2, 0, 1, 2}, .weights = class_weights})},
      {"cross_entropy: smoothed, weighted and ignored", cross_entropy({.sizes = {2, 2},
                                                                       .targets = {2, 0, 1, 2},
                                                                       .smoothing = 0.2,
                                                                       .weights = class_weights,
                                                                       .ignored = 0})},
      {"cross_entropy: each row",
       cross_entropy({.sizes = {2, 2}, .targets = {2, 0, -1, 2}, .mean = Mean::of_none})},
      {"cross_entropy: sum, smoothed and weighted", cross_entropy({.sizes = {4},
                                                                   .targets = {2, 0, 1, 2},
                                                                   .smoothing = 0.2,
                                                                   .weights = class_weights,
                                                                   .mean = Mean::sum})},
      {"cross_entropy: each row, smoothed and weighted", cross_entropy({.sizes = {4},
                                                                        .targets = {2, 0, 1, 2},
                                                                        .smoothing = 0.2,
                                                                        .weights = class_weights,
                                                                        .ignored = 1,
                                                                        .mean = Mean::of_none})},
      {"cross_entropy: one class", cross_entropy({.sizes = {2}, .targets = {0, 0}})},
      {"binary_cross_entropy: matrix", binary_cross_entropy(Mean::of_all)},
      {"binary_cross_entropy: size 1", binary_cross_entropy(Mean::of_all)},
      {"binary_cross_entropy: each element", binary_cross_entropy(Mean::of_none)},
      {"binary_cross_entropy_with_logits: sum", binary_cross_entropy_with_logits(Mean::sum)},
      {"binary_cross_entropy_with_logits: weighted",
       binary_cross_entropy_with_logits(Mean::of_all, {0.5, 2.0, 1.0, 3.0})},
      {"binary_cross_entropy_with_logits: weighted, each element, large",
       binary_cross_entropy_with_logits(Mean::of_none, 3.0)},
      {"binary_cross_entropy_with_logits: matrix", binary_cross_entropy_with_logits(Mean::of_all)},
      {"binary_cross_entropy_with_logits: large", binary_cross_entropy_with_logits(Mean::of_all)},
      {"mean_squared_error: matrix", mean_squared_error(Mean::of_all)},
      {"mean_squared_error: each element", mean_squared_error(Mean::of_none)},
      {"mean_squared_error: sum", mean_squared_error(Mean::sum)},
      {"mean_squared_error: scalar", mean_squared_error(Mean::of_all)},
  };
  return all;
}

}  // namespace qkv::tests::reference
