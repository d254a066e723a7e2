#include "core/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "core/ops.h"

namespace qkv {

namespace {

/// The elements of a parameter of `size` elements to be compared; `gradient` is empty when it has
/// none.
std::vector<Index> sample(Index size, std::span<const double> gradient, Index most,
                          const Random& random) {
  std::vector<Index> elements;
  if (size <= most) {
    elements.resize(static_cast<std::size_t>(size));
    std::iota(elements.begin(), elements.end(), 0);
    return elements;
  }
  elements = random.permutation(size);
  if (!gradient.empty())
    std::stable_partition(elements.begin() + most / 2, elements.end(), [&](Index element) {
      return gradient[static_cast<std::size_t>(element)] != 0;
    });
  elements.resize(static_cast<std::size_t>(most));
  return elements;
}

/// Compares one element, of which the gradient is `analytic`.
GradientCheck checked_element(const NamedParameter& entry, Index element, double analytic,
                              const std::function<Tensor()>& loss,
                              const GradientCheckOptions& options) {
  Parameter& parameter = *entry.parameter;
  const auto at = static_cast<std::size_t>(element);
  const double x = parameter.value().data<double>()[at];
  const auto loss_at = [&](double value) {
    parameter.mutable_data<double>()[at] = value;
    return loss().item();
  };
  GradientCheck best{std::numeric_limits<double>::infinity(), entry.path, element, analytic};
  for (const double step : {1e-5, 1e-6, 1e-7}) {
    const double h = step * std::max(1.0, std::fabs(x));
    const double numeric = (loss_at(x + h) - loss_at(x - h)) / (2 * h);
    const double error = std::fabs(analytic - numeric) /
                         std::max({options.scale, std::fabs(analytic), std::fabs(numeric)});
    if (error < best.error) {
      best.error = error;
      best.numeric = numeric;
    }
    if (best.error <= options.tolerance) break;
  }
  parameter.mutable_data<double>()[at] = x;
  return best;
}

}  // namespace

std::vector<GradientCheck> check_each_gradient(const std::vector<NamedParameter>& parameters,
                                               const std::function<Tensor()>& loss,
                                               const GradientCheckOptions& options) {
  const Gradients gradients = gradients_of(loss());
  const NoGrad no_grad;
  std::vector<GradientCheck> worst;
  for (const NamedParameter& entry : parameters) {
    const Parameter& parameter = *entry.parameter;
    require<TypeError>(parameter.dtype() == DType::float64,
                       "[check_gradients] {} is {}, whose differences are too rough; use float64: "
                       "convert(module, DType::float64) or Tensor::to",
                       entry.path, to_string(parameter.dtype()));
    std::span<const double> gradient;
    if (gradients.has(parameter)) gradient = gradients.of(parameter).data<double>();
    const Random random(options.seed, Purpose::sampling, worst.size());
    const auto elements = sample(parameter.value().size(), gradient, options.elements, random);
    GradientCheck& of_parameter = worst.emplace_back();
    of_parameter.parameter = entry.path;
    for (const Index element : elements) {
      const double analytic = gradient.empty() ? 0.0 : gradient[static_cast<std::size_t>(element)];
      const GradientCheck check = checked_element(entry, element, analytic, loss, options);
      if (check.error > of_parameter.error) of_parameter = check;
    }
    of_parameter.checked = std::ssize(elements);
    of_parameter.shape = parameter.shape();
  }
  return worst;
}

GradientCheck check_gradients(const std::vector<NamedParameter>& parameters,
                              const std::function<Tensor()>& loss) {
  GradientCheck worst;
  Index checked = 0;
  for (const GradientCheck& check : check_each_gradient(parameters, loss)) {
    checked += check.checked;
    if (check.error >= worst.error) worst = check;
  }
  worst.checked = checked;
  return worst;
}

GradientCheck check_gradients(const std::vector<Tensor>& inputs,
                              const std::function<Tensor(const std::vector<Tensor>&)>& op) {
  std::vector<Parameter> parameters;
  std::vector<NamedParameter> named;
  parameters.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    parameters.emplace_back(input);
    named.push_back({fmt::format("input {}", named.size()), &parameters.back()});
  }
  const Random random(1, Purpose::testing);
  return check_gradients(named, [&] {
    const Tensor y = op({parameters.begin(), parameters.end()});
    std::vector<double> weights(static_cast<std::size_t>(y.size()));
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = random.normal(i);
    return sum(y * Tensor::from(weights, y.shape(), y.dtype()));
  });
}

}  // namespace qkv
