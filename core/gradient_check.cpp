#include "core/gradient_check.h"

#include <algorithm>
#include <cmath>

#include "core/ops.h"

namespace qkv {

GradientCheck check_gradients(const std::vector<NamedParameter>& parameters,
                              const std::function<Tensor()>& loss) {
  const Gradients gradients = gradients_of(loss());
  const NoGrad no_grad;
  GradientCheck worst;
  for (const NamedParameter& entry : parameters) {
    Parameter* parameter = entry.parameter;
    const bool has = gradients.has(*parameter);
    for (Index i = 0; i < parameter->value().size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double x = parameter->value().data<double>()[at];
      const double h = 1e-5 * std::max(1.0, std::fabs(x));
      const auto loss_at = [&](double value) {
        parameter->mutable_data<double>()[at] = value;
        return loss().item();
      };
      const double numeric = (loss_at(x + h) - loss_at(x - h)) / (2 * h);
      parameter->mutable_data<double>()[at] = x;
      const double analytic = has ? gradients.of(*parameter).data<double>()[at] : 0.0;
      const double error =
          std::fabs(analytic - numeric) / std::max({1.0, std::fabs(analytic), std::fabs(numeric)});
      if (error > worst.error || std::isnan(error))
        worst = {error, entry.path, i, analytic, numeric};
    }
  }
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
