#include "inspect/weight_statistics.h"

#include <algorithm>
#include <cmath>

#include "core/ops.h"
#include "inspect/linear_algebra.h"
#include "layers/attention.h"

namespace qkv {
namespace {

double dot(const Tensor& a, const Tensor& b) {
  return sum(a * b).item();
}

double norm_of(const Tensor& values) {
  return std::sqrt(dot(values, values));
}

HeadSpectrum spectrum_of(const MultiHeadAttention& attention, const std::string& path, Index head) {
  const Tensor &w_v = attention.w_v->weight, &w_o = attention.w_o->weight;
  const Index heads = attention.options.heads, width = w_o.dim(1) / heads;
  const auto rows = [&](const Tensor& w, Index of) {
    return slice(w.detach(), 0, of * width, (of + 1) * width);
  };
  // Several query heads may share a key and value head.
  const Index shared = head * attention.kv_heads / heads;
  HeadSpectrum result{path, head, {}, {}};
  if (attention.w_q)
    result.qk = product_singular_values(rows(attention.w_q->weight, head),
                                        rows(attention.w_k->weight, shared));
  const Tensor out = permute(slice(w_o.detach(), 1, head * width, (head + 1) * width), {1, 0});
  result.ov = product_singular_values(rows(w_v, shared), out);
  return result;
}

}  // namespace

Statistics statistics(const Tensor& x) {
  const Tensor values = x.detach().to(DType::float64);
  Statistics result{.norm = norm_of(values),
                    .mean = mean(values).item(),
                    .std = std::sqrt(variance(values).item()),
                    .min = min(values).item(),
                    .max = max(values).item(),
                    .zeros = mean(equal(values, Tensor::scalar(0, DType::float64))).item(),
                    .histogram = std::vector<Index>(histogram_bins)};
  const double span = result.max - result.min;
  for (const double v : values.values()) {
    const double bin = span > 0 ? (v - result.min) / span * histogram_bins : 0;
    ++result.histogram[std::min(static_cast<std::size_t>(bin), histogram_bins - 1)];
  }
  return result;
}

std::vector<HeadSpectrum> head_spectra(Module& model) {
  std::vector<HeadSpectrum> spectra;
  for (const auto& [path, attention] : modules<MultiHeadAttention>(model))
    for (Index head = 0; attention->w_v && head < attention->options.heads; ++head)
      spectra.push_back(spectrum_of(*attention, path, head));
  return spectra;
}

std::vector<Change> changes(const std::vector<NamedParameter>& now,
                            const std::vector<NamedParameter>& before) {
  std::vector<Change> result;
  for (const auto& [path, parameter] : now) {
    const auto old = std::ranges::find(before, path, &NamedParameter::path);
    if (old == before.end()) continue;
    require(old->parameter->shape() == parameter->shape(),
            "{} has shape {} in one model and {} in the other", path, parameter->shape(),
            old->parameter->shape());
    const Tensor a = parameter->value().detach().to(DType::float64),
                 b = old->parameter->value().detach().to(DType::float64);
    const double norms = norm_of(a) * norm_of(b);
    result.push_back(
        {path, norm_of(a), norm_of(b), norm_of(a - b), norms > 0 ? dot(a, b) / norms : 0});
  }
  std::ranges::stable_sort(result, std::greater(), &Change::relative);
  return result;
}

}  // namespace qkv
