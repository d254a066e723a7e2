#include "inspect/weight_statistics.h"

#include <algorithm>
#include <cmath>

#include "core/ops.h"
#include "inspect/decomposition.h"
#include "layers/attention.h"

namespace qkv {
namespace {

double norm_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double v : values) squares += v * v;
  return std::sqrt(squares);
}

const Tensor* find(const std::vector<NamedParameter>& parameters, const std::string& path) {
  const auto found = std::ranges::find(parameters, path, &NamedParameter::path);
  return found == parameters.end() ? nullptr : &found->parameter->value();
}

/// Singular values of A^T B, of which only the first rank(A) can differ from 0.
std::vector<double> spectrum(const Tensor& a, const Tensor& b) {
  auto values = singular_values(matmul(a, b, Transpose::first));
  values.resize(std::min(values.size(), static_cast<std::size_t>(a.dim(0))));
  return values;
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
    result.qk = spectrum(rows(attention.w_q->weight, head), rows(attention.w_k->weight, shared));
  const Tensor out = permute(slice(w_o.detach(), 1, head * width, (head + 1) * width), {1, 0});
  result.ov = spectrum(rows(w_v, shared), out);
  return result;
}

}  // namespace

Statistics statistics(const Tensor& x) {
  const auto values = x.values();
  const auto count = static_cast<double>(values.size());
  double total = 0;
  Index zeros = 0;
  for (const double v : values) total += v, zeros += v == 0;
  Statistics result{.norm = norm_of(values),
                    .mean = total / count,
                    .deviation = 0,
                    .min = std::ranges::min(values),
                    .max = std::ranges::max(values),
                    .zeros = static_cast<double>(zeros) / count,
                    .histogram = std::vector<Index>(histogram_bins)};
  const double span = result.max - result.min;
  double squares = 0;
  for (const double v : values) {
    squares += (v - result.mean) * (v - result.mean);
    const double bin = span > 0 ? (v - result.min) / span * histogram_bins : 0;
    ++result.histogram[std::min(static_cast<std::size_t>(bin), histogram_bins - 1)];
  }
  result.deviation = std::sqrt(squares / count);
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
    const auto a = parameter->value().values(), b = old->values();
    std::vector<double> difference(a.size());
    double dot = 0;
    for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i], dot += a[i] * b[i];
    const double norms = norm_of(a) * norm_of(b);
    result.push_back(
        {path, norm_of(a), norm_of(b), norm_of(difference), norms > 0 ? dot / norms : 0});
  }
  std::ranges::stable_sort(result, std::greater(), &Change::relative);
  return result;
}

}  // namespace qkv
