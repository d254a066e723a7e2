#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/ops.h"
#include "core/parameter.h"
#include "tests/support/randn.h"

namespace qkv::tests {

TEST_CASE("dropout keeps the mean, and the same stream drops the same elements") {
  const Random random(5, Purpose::dropout);
  const auto y = dropout(Tensor::full({10'000}, 1), 0.3, random).values();
  double total = 0;
  for (const double v : y) total += v;
  CHECK(total / 10'000 == doctest::Approx(1).epsilon(0.02));
  CHECK(y == dropout(Tensor::full({10'000}, 1), 0.3, random).values());
  CHECK(y != dropout(Tensor::full({10'000}, 1), 0.3, Random(5, Purpose::dropout, 1)).values());
}

TEST_CASE("attention drops the weights whose random values its mask names, at any size") {
  const Random random(7, Purpose::dropout, 3);
  constexpr double probability = 0.3;
  constexpr Index batch = 3, heads = 2;
  // Queries and keys around the widths of vectors, and matrices around those that are drawn whole.
  for (const auto& [queries, keys] : std::vector<std::pair<Index, Index>>{{1, 1},
                                                                          {1, 9},
                                                                          {3, 5},
                                                                          {4, 4},
                                                                          {8, 7},
                                                                          {9, 16},
                                                                          {17, 12},
                                                                          {33, 31},
                                                                          {64, 64},
                                                                          {65, 64},
                                                                          {63, 66},
                                                                          {130, 70}})
    for (const bool causal : {false, true}) {
      CAPTURE(queries);
      CAPTURE(keys);
      CAPTURE(causal);
      // Values are the identity, so that outputs are weights, and so are gradients of values.
      const Index width = keys * heads;
      std::vector<double> identity;
      for (Index i = 0; i < batch * keys * width; ++i)
        identity.push_back(i % keys == i / width % keys ? 1 : 0);
      const Parameter values(Tensor::from(identity, {batch, keys, width}));
      const AttentionMask mask{.key_lengths = Indices({static_cast<std::int32_t>(keys), 1,
                                                       static_cast<std::int32_t>((keys + 1) / 2)},
                                                      {batch}),
                               .causal = causal};
      const Tensor q = randn({batch, queries, width}),
                   k = randn({batch, keys, width}, DType::float32, 1);
      AttentionOptions options{.heads = heads, .scale = 0.1};
      const Tensor weights = attention_weights(q, k, mask, options);
      options.dropout = probability;
      const Tensor y = attention(q, k, values, mask, options, random);
      const Tensor dy = randn(y.shape(), DType::float32, 2);
      const Tensor dv = gradients_of(sum(y * dy)).of(values);

      double worst = 0, worst_gradient = 0;
      for (Index b = 0; b < batch; ++b)
        for (Index h = 0; h < heads; ++h)
          for (Index key = 0; key < keys; ++key) {
            std::vector<double> gradient(static_cast<std::size_t>(keys));
            for (Index query = 0; query < queries; ++query) {
              const Index matrix = b * heads + h;
              const bool kept = random.uniform(static_cast<std::uint64_t>(
                                    (matrix * keys + key) * queries + query)) >= probability;
              const double expected = kept ? weights(b, h, query, key) / (1 - probability) : 0;
              worst = std::max(worst, std::abs(y(b, query, h * keys + key) - expected));
              for (Index i = 0; i < keys; ++i)
                gradient[static_cast<std::size_t>(i)] += expected * dy(b, query, h * keys + i);
            }
            for (Index i = 0; i < keys; ++i)
              worst_gradient = std::max(
                  worst_gradient,
                  std::abs(dv(b, key, h * keys + i) - gradient[static_cast<std::size_t>(i)]));
          }
      CHECK(worst < 1e-6);
      CHECK(worst_gradient < 1e-4);
    }
}

}  // namespace qkv::tests
