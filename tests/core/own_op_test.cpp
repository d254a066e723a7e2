#include <doctest/doctest.h>
#include <qkv/core/gradient_check.h>

#include "tests/install/softsign.h"

// An op of a user, compiled with the headers that users see.

TEST_CASE("an op written with xtensor outside the library has its values and its gradient") {
  const qkv::Tensor x = qkv::Tensor::from({-3, -0.5, 0.25, 1}, {2, 2}, qkv::DType::float64);
  CHECK(softsign(x).values() == std::vector<double>{-0.75, -0.5 / 1.5, 0.2, 0.5});
  const auto check = qkv::check_gradients(
      {x}, [](const std::vector<qkv::Tensor>& inputs) { return softsign(inputs[0]); });
  CHECK(check.error < 1e-8);
  CHECK(softsign(x.to(qkv::DType::float32)).dtype() == qkv::DType::float32);
}
