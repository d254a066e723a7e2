#include "inspect/weight_statistics.h"

#include <algorithm>
#include <cmath>
#include <xtensor-blas/xblas.hpp>

#include "core/ops.h"
#include "core/xtensor.h"
#include "inspect/decomposition.h"
#include "layers/attention.h"

namespace qkv {
namespace {

using Vector = xt::xtensor<double, 1>;

/// All elements in a row.
Vector flattened(const Tensor& x) {
  const Tensor row = x.detach().to(DType::float64).with_shape({x.size()});
  return xtensor_view<double, 1>(row);
}

double dot(const Vector& a, const Vector& b) {
  double result = 0;
  xt::blas::dot(a, b, result);
  return result;
}

double norm_of(const Vector& values) {
  return std::sqrt(dot(values, values));
}

const Tensor* find(const std::vector<NamedParameter>& parameters, const std::string& path) {
  const auto found = std::ranges::find(parameters, path, &NamedParameter::path);
  return found == parameters.end() ? nullptr : &found->parameter->value();
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
  const Vector values = flattened(x);
  const xt::xtensor<double, 0> mean = xt::mean(values), least = xt::amin(values),
                               largest = xt::amax(values);
  const Vector deviations = values - mean();
  const auto count = static_cast<double>(values.size());
  Statistics result{.norm = norm_of(values),
                    .mean = mean(),
                    .std = norm_of(deviations) / std::sqrt(count),
                    .min = least(),
                    .max = largest(),
                    .zeros = static_cast<double>(std::ranges::count(values, 0.0)) / count,
                    .histogram = std::vector<Index>(histogram_bins)};
  const double span = result.max - result.min;
  for (const double v : values) {
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
    const Tensor* old = find(before, path);
    if (!old) continue;
    require(old->shape() == parameter->shape(), "{} has shape {} in one model and {} in the other",
            path, parameter->shape(), old->shape());
    const Vector a = flattened(*parameter), b = flattened(*old), difference = a - b;
    const double norms = norm_of(a) * norm_of(b);
    result.push_back(
        {path, norm_of(a), norm_of(b), norm_of(difference), norms > 0 ? dot(a, b) / norms : 0});
  }
  std::ranges::stable_sort(result, std::greater(), &Change::relative);
  return result;
}

}  // namespace qkv
