#include "inspect/attention_flow.h"

#include <limits>
#include <numeric>
#include <xtensor-blas/xlinalg.hpp>

#include "core/xtensor.h"

namespace qkv {
namespace {

using Matrix = xt::xtensor<double, 2>;
using Vector = xt::xtensor<double, 1>;

Matrix to_matrix(const Tensor& x) {
  return xtensor_view<double, 2>(x.to(DType::float64));
}

double total(const Matrix& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// The variance of each row's values where the mask is 1; its mean over rows.
double score_variance(const Matrix& scores, const Matrix& mask) {
  const Vector visible = xt::sum(mask, {1}), count = xt::maximum(visible, 1.0);
  const Matrix masked = mask * scores;
  const Vector sums = xt::sum(masked, {1});
  const Vector means = sums / count;
  const Matrix deviations = mask * (scores - xt::view(means, xt::all(), xt::newaxis()));
  return total(deviations * deviations / xt::view(count, xt::all(), xt::newaxis())) /
         static_cast<double>(scores.shape(0));
}

/// Recorded weights of one sentence [1, head, query, key] -> [head, query, key], float64.
Tensor by_head(const Tensor& weights) {
  return weights.to(DType::float64).with_shape({weights.dim(1), weights.dim(2), weights.dim(3)});
}

double entropy(const Matrix& weights) {
  constexpr double smallest = std::numeric_limits<double>::min();  // 0 log2 0 = 0
  return (0 - total(weights * xt::log2(xt::maximum(weights, smallest)))) /
         static_cast<double>(weights.shape(0));
}

}  // namespace

std::vector<AttentionSteps> self_attention_steps(const Recorder& recorder) {
  auto modules = attention_steps(recorder);
  std::erase_if(modules, [](const AttentionSteps& module) { return module.cross; });
  return modules;
}

LayerWeights self_attention(const Recorder& recorder) {
  LayerWeights layers;
  for (const Recorder::Record& record : recorder.all())
    if (record.name == "weights" && recorder.at(beside(record, "cross")).item() == 0)
      layers.push_back(by_head(record.value));
  return layers;
}

LayerWeights attention_of(const Recorder& recorder, const Transformer& stack, bool cross) {
  LayerWeights layers;
  for (const TransformerBlock& block : stack.layers)
    layers.push_back(
        by_head(recorder.at(cross ? *block.cross_attention : block.attention, "weights")));
  return layers;
}

Tensor weights_of_head(const Tensor& layer, Index head) {
  return slice(layer, 0, head, head + 1).with_shape({layer.dim(1), layer.dim(2)});
}

Tensor rollout(const LayerWeights& layers) {
  const auto time = static_cast<std::size_t>(layers.at(0).dim(1));
  Matrix flow = xt::eye<double>(time);
  for (const Tensor& weights : layers) {
    const auto heads = xtensor_view<double, 3>(weights);
    const Matrix mean = xt::mean(heads, {0});
    const Matrix step = 0.5 * mean + 0.5 * xt::eye<double>(time);
    flow = Matrix(xt::linalg::dot(step, flow));
  }
  return from_xtensor(flow);
}

double entropy(const Tensor& weights) {
  return entropy(to_matrix(weights));
}

AttentionStatistics attention_statistics(const Tensor& weights) {
  const Matrix w = to_matrix(weights);
  const std::size_t time = w.shape(0);
  const Vector positions = xt::arange<double>(static_cast<double>(time));
  const Matrix offsets = xt::view(positions, xt::newaxis(), xt::all()) -
                         xt::view(positions, xt::all(), xt::newaxis());  // key - query
  const auto mean_where = [&](const Matrix& chosen) {
    return total(w * chosen) / static_cast<double>(time);
  };
  const Matrix keys = xt::ones_like(w) * xt::view(positions, xt::newaxis(), xt::all());
  return {.entropy = entropy(w),
          .self = mean_where(xt::equal(offsets, 0.0)),
          .previous = mean_where(xt::equal(offsets, -1.0)),
          .next = mean_where(xt::equal(offsets, 1.0)),
          .first = mean_where(xt::equal(keys, 0.0)),
          .last = mean_where(xt::equal(keys, static_cast<double>(time) - 1)),
          .distance = mean_where(xt::abs(offsets))};
}

AttentionStatistics attention_statistics(const AttentionSteps& module, std::size_t head) {
  const HeadSteps& steps = module.heads.at(head);
  AttentionStatistics result = attention_statistics(steps.weights);
  result.score_variance = score_variance(to_matrix(steps.scaled), to_matrix(module.mask));
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
