#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "core/gradient_check.h"
#include "layers/model.h"
#include "tests/support/randn.h"

namespace qkv::tests {

inline Random fresh() {
  return Random(1, Purpose::initialisation);
}

/// A module with its first values.
template <class M, class... Arguments>
M initialised(const Arguments&... arguments) {
  M module(arguments...);
  initialise(module, 1);
  return module;
}

inline std::vector<std::string> paths_of(Module& module) {
  std::vector<std::string> paths;
  for (const auto& [path, parameter] : parameters(module)) paths.push_back(path);
  return paths;
}

inline std::map<std::string, Shape> shapes_of(Module& module) {
  std::map<std::string, Shape> shapes;
  for (const auto& [path, parameter] : parameters(module)) shapes[path] = parameter->shape();
  return shapes;
}

/// Weights as large as after training, so that the output depends clearly on the input.
inline void assign_normal(Module& module) {
  std::uint64_t stream = 0;
  for (const auto& [path, parameter] : parameters(module))
    if (parameter->shape().rank() == 2)
      parameter->assign(0.7 * randn(parameter->shape(), DType::float32, stream++));
}

/// Gradient check of a whole module in float64, with biases and gains moved away from 0 and 1.
template <class Call>
GradientCheck checked(Module& module, Call call) {
  convert(module, DType::float64);
  std::uint64_t stream = 0;
  for (const auto& [path, parameter] : parameters(module))
    parameter->assign(parameter->value() +
                      0.1 * randn(parameter->shape(), DType::float64, stream++));
  return check_gradients(parameters(module), [&] {
    const Tensor y = call();
    return sum(y * randn(y.shape(), DType::float64, 99));
  });
}

}  // namespace qkv::tests
