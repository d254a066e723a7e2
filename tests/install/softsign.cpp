#include "softsign.h"

#include <fmt/format.h>
#include <qkv/core/gradient_check.h>

int main() {
  const qkv::Tensor x = qkv::Tensor::from({-3, -0.5, 0.25, 1}, {2, 2}, qkv::DType::float64);
  const auto check = qkv::check_gradients(
      {x}, [](const std::vector<qkv::Tensor>& inputs) { return softsign(inputs[0]); });
  fmt::print("gradient {}\n", check.error < 1e-8 ? "right" : "wrong");
}
