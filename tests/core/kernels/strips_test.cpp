#include "core/kernels/strips.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "core/kernels/gemm.h"
#include "core/parallel.h"
#include "core/weight_format.h"

namespace qkv::kernels {
namespace {

std::vector<float> drawn_elements(Index count, std::mt19937_64& drawn) {
  std::normal_distribution<float> normal;
  std::vector<float> elements(static_cast<std::size_t>(count));
  for (float& x : elements) x = normal(drawn);
  return elements;
}

/// A product of drawn sizes around the widths of vectors and of strips that are taken together, and
/// several depths.
struct Product {
  Product(Index rows, bool is_small, std::mt19937_64& drawn)
      : m(up_to(rows, drawn)),
        out(up_to(is_small ? 70 : 300, drawn)),
        in(up_to(is_small ? 40 : 1000, drawn)),
        adds(drawn() % 2 == 0),
        x(drawn_elements(m * in, drawn)),
        weight(drawn_elements(out * in, drawn)),
        y(drawn_elements(m * out, drawn)) {}

  /// y after the product by strips, and after it by `parallel_gemm`, of a weight.
  std::vector<float> by_strips(WeightFormat format) const {
    std::vector<float> result = y;
    Strips(format, weight.data(), out, in).multiply(m, x.data(), adds, result.data());
    return result;
  }
  std::vector<float> by_gemm(const std::vector<float>& w) const {
    std::vector<float> result = y;
    parallel_gemm<float>(m, out, in, 1, {x.data(), in}, {w.data(), in, true}, adds ? 1 : 0,
                         Matrix<float>{result.data(), out});
    return result;
  }
  /// The weight as int8 rounds it.
  std::vector<float> rounded_weight() const {
    std::vector<float> rounded = weight;
    std::vector<std::int8_t> integers(static_cast<std::size_t>(in));
    for (auto row = rounded.begin(); row != rounded.end(); row += in) {
      const float scale = to_int8({row, row + in}, integers);
      std::ranges::transform(integers, row,
                             [&](std::int8_t i) { return scale * static_cast<float>(i); });
    }
    return rounded;
  }

  Index m, out, in;
  bool adds;
  std::vector<float> x, weight, y;

 private:
  static Index up_to(Index most, std::mt19937_64& drawn) {
    return 1 + static_cast<Index>(drawn() % static_cast<std::uint64_t>(most));
  }
};

void check_close(const std::vector<float>& y, const std::vector<float>& expected) {
  for (std::size_t i = 0; i < y.size(); ++i)
    CHECK(y[i] == doctest::Approx(expected[i]).epsilon(1e-4));
}

}  // namespace

TEST_CASE("strips multiply few rows with the bits of our own products") {
  std::mt19937_64 drawn(11);
  for (int i = 0; i < 300; ++i) {
    const Product product(Strips::most_rows, i % 6 > 0, drawn);
    const auto y = product.by_strips(WeightFormat::float32),
               expected = product.by_gemm(product.weight);
    CAPTURE(i);
    if (product_rows_are_independent)
      CHECK(y == expected);
    else
      check_close(y, expected);
  }
}

TEST_CASE("int8 strips multiply any number of rows as the rounded weights do") {
  std::mt19937_64 drawn(12);
  for (int i = 0; i < 300; ++i) {
    const Product product(3 * Strips::most_rows, i % 6 > 0, drawn);
    CAPTURE(i);
    check_close(product.by_strips(WeightFormat::int8), product.by_gemm(product.rounded_weight()));
  }
}

TEST_CASE("a row of an int8 product does not depend on the others") {
  std::mt19937_64 drawn(13);
  for (Index m = 1; m <= 2 * Strips::most_rows + 1; ++m) {
    const Index out = 75, in = 501;
    const auto x = drawn_elements(m * in, drawn), weight = drawn_elements(out * in, drawn);
    const Strips strips(WeightFormat::int8, weight.data(), out, in);
    std::vector<float> all(static_cast<std::size_t>(m * out)), alone = all;
    strips.multiply(m, x.data(), false, all.data());
    for (Index row = 0; row < m; ++row)
      strips.multiply(1, x.data() + row * in, false, alone.data() + row * out);
    CHECK(all == alone);
  }
}

TEST_CASE("strips have the same bits for any number of threads, and nothing is read without rows") {
  std::mt19937_64 drawn(3);
  const Index out = 1000, in = 700, m = 6;
  const auto x = drawn_elements(m * in, drawn), weight = drawn_elements(out * in, drawn);
  const int before = threads();
  for (const auto& [format, rows] :
       {std::pair{WeightFormat::float32, Index{2}}, std::pair{WeightFormat::int8, m}}) {
    const Strips strips(format, weight.data(), out, in);
    std::vector<float> one(static_cast<std::size_t>(rows * out)), three = one;
    set_threads(1);
    strips.multiply(rows, x.data(), false, one.data());
    set_threads(3);
    strips.multiply(rows, x.data(), false, three.data());
    set_threads(before);
    CHECK(one == three);
    strips.multiply(0, nullptr, true, nullptr);
  }
}

}  // namespace qkv::kernels
