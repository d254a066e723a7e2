#include "core/anomaly.h"

#include <algorithm>
#include <cmath>

namespace qkv {
namespace {

bool has_nan(const Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() {
    return std::ranges::any_of(x.data<T>(), [](auto v) { return std::isnan(v); });
  });
}

bool is_finite(const Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() {
    return std::ranges::all_of(x.data<T>(), [](auto v) { return std::isfinite(v); });
  });
}

std::string_view kind_of_anomaly(const Tensor& x) {
  return has_nan(x) ? "a NaN" : "an infinity";
}

}  // namespace

void detail::require_no_anomaly(std::string_view op, const Tensor& y,
                                std::span<const Tensor> inputs) {
  if (is_finite(y)) return;
  const bool inherited =
      has_nan(y) ? std::ranges::any_of(inputs, has_nan) : !std::ranges::all_of(inputs, is_finite);
  if (inherited) return;
  std::string shapes;
  for (const Tensor& x : inputs) shapes += (shapes.empty() ? "" : ", ") + to_string(x.shape());
  throw AnomalyError(
      fmt::format("[{}] produced {} in its output of shape {}, from inputs of shapes {}", op,
                  kind_of_anomaly(y), y.shape(), shapes));
}

void detail::require_finite_gradient(std::string_view op, std::size_t i, const Tensor& dx) {
  if (!is_finite(dx))
    throw AnomalyError(
        fmt::format("[{}] produced {} in backward, in the gradient of input {} of shape {}", op,
                    kind_of_anomaly(dx), i, dx.shape()));
}

}  // namespace qkv
