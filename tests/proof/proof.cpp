#include "tests/proof/proof.h"

#include "core/gradient_check.h"
#include "core/ops.h"
#include "optim/optimizer.h"
#include "tests/support/randn.h"

namespace qkv::tests {
namespace {

const OptimizerOptions row_optimizer{.kind = OptimizerKind::sgd, .momentum = 0.9};
constexpr int row_steps = 10;
constexpr double gradient_tolerance = 1e-7;  ///< of proof.py

/// Writes a row's values, output, gradients and what ten steps make of the values, in one type.
void write_row(Proof& proof, const std::string& path, const ProofRow& row) {
  const auto weighted = [&](const Tensor& y) { return sum(y * randn(y.shape(), y.dtype())); };
  for (const auto& [name, parameter] : row.parameters)
    proof.write(path + ".values." + name, parameter->value());
  const Tensor y = row.output();
  proof.write(path + ".output", y);
  proof.write(path + ".lr", Tensor::scalar(row.lr, DType::float64));
  proof.write(path + ".weights", randn(y.shape(), y.dtype()));
  const auto optimizer = make_optimizer(row_optimizer);
  for (int step = 0; step < row_steps; ++step) {
    const Gradients gradients = gradients_of(weighted(row.output()));
    for (const auto& [name, parameter] : row.parameters)
      if (step == 0)
        proof.write(path + ".gradients." + name,
                    gradients.has(*parameter) ? gradients.of(*parameter)
                                              : Tensor::zeros(parameter->shape(), y.dtype()));
    optimizer->step(row.parameters, gradients, row.lr, step);
  }
  for (const auto& [name, parameter] : row.parameters)
    proof.write(path + ".trained." + name, parameter->value());
}

}  // namespace

std::string Proof::add(const std::string& section, const std::string& label) {
  auto& labels = file_.vocabulary[section];
  labels.push_back(label);
  return fmt::format("{}.{}", section, labels.size() - 1);
}

void Proof::add(const std::string& section, const ProofRow& row) {
  const std::string path = add(section, row.label);
  if (!row.detaches) {
    const auto loss = [&] {
      const Tensor y = row.output();
      return sum(y * randn(y.shape(), y.dtype()));
    };
    double worst = 0;
    for (const GradientCheck& check :
         check_each_gradient(row.parameters, loss, {.tolerance = gradient_tolerance}))
      worst = std::max(worst, check.error);
    write(path + ".gradient_check", Tensor::scalar(worst, DType::float64));
  }
  std::vector<Tensor> start;
  for (const auto& [name, parameter] : row.parameters) start.push_back(parameter->value().detach());
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (std::size_t i = 0; i < start.size(); ++i)
      row.parameters[i].parameter->assign(start[i].to(dtype));
    write_row(*this, path + "." + std::string(to_string(dtype)), row);
  }
}

void prove_module(Proof& proof, const std::string& section, const std::string& label,
                  Module& module, const std::vector<Shape>& inputs, const ModuleCall& call) {
  std::uint64_t stream = 0;
  std::vector<Parameter> tensors;
  for (const Shape& shape : inputs) tensors.emplace_back(randn(shape, DType::float64, ++stream));
  ProofRow row{label, {}, [&] {
                 Context context;
                 return call({tensors.begin(), tensors.end()}, context);
               }};
  for (std::size_t i = 0; i < tensors.size(); ++i)
    row.parameters.push_back({fmt::format("inputs.{}", i), &tensors[i]});
  for (const auto& [path, parameter] : parameters(module)) {
    parameter->assign(randn(parameter->shape(), DType::float64, ++stream) * 0.3);
    row.parameters.push_back({"parameters." + path, parameter.get()});
  }
  proof.add(section, row);
}

}  // namespace qkv::tests
