#include "core/packed_weights.h"

#include <doctest/doctest.h>

#include "core/autograd.h"
#include "core/joining_thread.h"
#include "core/kernels/gemm.h"
#include "core/kernels/strips.h"
#include "core/ops.h"
#include "core/parameter.h"
#include "tests/support/randn.h"

namespace qkv::tests {

TEST_CASE("packed weights change no bit of a linear layer, whatever it reads") {
  PackedWeights weights(WeightFormat::float32);
  for (const DType dtype : {DType::float32, DType::float64})
    for (const bool with_bias : {false, true})
      for (Index rows = 0; rows <= kernels::Strips::most_rows + 2; ++rows) {
        const Tensor w = randn({19, 33}, dtype, 1), x = randn({1, rows, 33}, dtype, 2);
        const Tensor bias = with_bias ? randn({19}, dtype, 3) : Tensor();
        const Tensor expected = linear(x, w, bias);
        const PackedWeights::Use use(weights);
        const Tensor y = linear(x, w, bias);
        if (kernels::product_rows_are_independent)
          CHECK(y.values() == expected.values());
        else
          CHECK(sum(abs(y - expected)).item() < 1e-3);
      }
}

TEST_CASE("int8 weights serve every float32 product, and no other") {
  PackedWeights weights(WeightFormat::int8);
  const PackedWeights::Use use(weights);
  for (const DType dtype : {DType::float32, DType::float64})
    for (Index rows = 0; rows <= 2 * kernels::Strips::most_rows; ++rows) {
      // The scale is 1, so that .25 becomes 0.
      const Tensor w = Tensor::from({127, .25, -127, 1}, {2, 2}).to(dtype);
      const Tensor y = linear(Tensor::full({rows, 2}, 1, dtype), w, Tensor::full({2}, 10, dtype));
      CHECK(y.shape() == Shape{rows, 2});
      for (Index row = 0; row < rows; ++row) {
        CHECK(y.values()[2 * row] == (dtype == DType::float32 ? 137 : 137.25));
        CHECK(y.values()[2 * row + 1] == -116);
      }
    }
}

TEST_CASE("a weight that is written anew is packed anew") {
  Parameter w(Tensor::full({2, 3}, 1));
  PackedWeights weights(WeightFormat::float32);
  const PackedWeights::Use use(weights);
  const Tensor x = Tensor::from({1, 2, 3}, {1, 3});
  CHECK(linear(x, w, {}).values() == std::vector<double>{6, 6});
  w.mutable_data<float>()[0] = 2;
  CHECK(linear(x, w, {}).values() == std::vector<double>{7, 6});
  w.assign(Tensor::full({2, 3}, 3));
  CHECK(linear(x, w, {}).values() == std::vector<double>{18, 18});
}

TEST_CASE("weights are packed for one thread, and no longer than the scope lasts") {
  PackedWeights weights(WeightFormat::float32);
  CHECK(Execution::current().packed == nullptr);
  {
    const PackedWeights::Use use(weights);
    CHECK(Execution::current().packed == &weights);
    const PackedWeights* other = &weights;
    {
      const JoiningThread thread([&] { other = Execution::current().packed; });
    }
    CHECK(other == nullptr);
  }
  CHECK(Execution::current().packed == nullptr);
}

TEST_CASE("gradients do not change with packed weights") {
  const Parameter w(randn({5, 4}, DType::float32, 1));
  const Tensor x = randn({2, 4}, DType::float32, 2);
  const auto gradient = [&] { return gradients_of(sum(linear(x, w, {}))).of(w).values(); };
  const auto expected = gradient();
  PackedWeights weights(WeightFormat::float32);
  const PackedWeights::Use use(weights);
  CHECK(gradient() == expected);
}

}  // namespace qkv::tests
