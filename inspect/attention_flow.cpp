#include "inspect/attention_flow.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "layers/initialise.h"

namespace qkv {
namespace {

/// The variance of each row's values where the mask is 1; its mean over rows.
double score_variance(const Tensor& scores, const Tensor& mask) {
  const Tensor count = maximum(sum(mask, 1, true), Tensor::scalar(1, mask.dtype()));
  const Tensor deviations = mask * (scores - sum(mask * scores, 1, true) / count);
  return sum(deviations * deviations / count).item() / static_cast<double>(scores.dim(0));
}

}  // namespace

Tensor weights_of_head(const Tensor& layer, Index head) {
  return slice(layer, 0, head, head + 1).with_shape({layer.dim(1), layer.dim(2)});
}

Tensor rollout(const LayerWeights& layers) {
  const Tensor self = identity(layers.at(0).dim(1)).to(DType::float64);
  Tensor flow = self;
  for (const Tensor& weights : layers) flow = matmul(0.5 * mean(weights, 0) + 0.5 * self, flow);
  return flow;
}

double entropy(const Tensor& weights) {
  const Tensor w = weights.to(DType::float64);
  constexpr double smallest = std::numeric_limits<double>::min();  // 0 log2 0 = 0
  const double sum_of_logs = sum(w * log(clamp(w, smallest, 1))).item() / std::numbers::ln2;
  return (0 - sum_of_logs) / static_cast<double>(w.dim(0));
}

AttentionStatistics attention_statistics(const Tensor& weights) {
  const auto values = weights.values();
  const Index time = weights.dim(0);
  AttentionStatistics found{.entropy = entropy(weights)};
  for (Index i = 0; i < std::ssize(values); ++i) {
    const Index key = i % time, offset = key - i / time;
    const double weight = values[static_cast<std::size_t>(i)] / static_cast<double>(time);
    if (offset == 0) found.self += weight;
    if (offset == -1) found.previous += weight;
    if (offset == 1) found.next += weight;
    if (key == 0) found.first += weight;
    if (key == time - 1) found.last += weight;
    found.distance += weight * static_cast<double>(std::abs(offset));
  }
  return found;
}

AttentionStatistics attention_statistics(const AttentionSteps& module, std::size_t head) {
  const HeadSteps& steps = module.heads.at(head);
  AttentionStatistics result = attention_statistics(steps.weights);
  result.score_variance =
      score_variance(steps.scaled.to(DType::float64), module.mask.to(DType::float64));
  return result;
}

AttentionStatistics mean_statistics(const std::vector<AttentionStatistics>& all) {
  AttentionStatistics mean;
  const double weight = all.empty() ? 0 : 1 / static_cast<double>(all.size());
  for (const AttentionStatistics& one : all)
    for (const auto member :
         {&AttentionStatistics::entropy, &AttentionStatistics::self, &AttentionStatistics::previous,
          &AttentionStatistics::next, &AttentionStatistics::first, &AttentionStatistics::last,
          &AttentionStatistics::distance, &AttentionStatistics::score_variance,
          &AttentionStatistics::answer})
      mean.*member += weight * one.*member;
  return mean;
}

}  // namespace qkv
