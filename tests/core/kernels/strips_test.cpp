#include "core/kernels/strips.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "core/kernels/gemm.h"
#include "core/parallel.h"

namespace qkv::kernels {
namespace {

std::vector<float> drawn_elements(Index count, std::mt19937_64& drawn) {
  std::normal_distribution<float> normal;
  std::vector<float> elements(static_cast<std::size_t>(count));
  for (float& x : elements) x = normal(drawn);
  return elements;
}

}  // namespace

TEST_CASE("strips multiply few rows with the bits of our own products") {
  std::mt19937_64 drawn(11);
  const auto up_to = [&](Index most) {
    return 1 + static_cast<Index>(drawn() % static_cast<std::uint64_t>(most));
  };
  for (int i = 0; i < 300; ++i) {
    // Around the widths of vectors and of the strips that are taken together, and several depths.
    const Index m = up_to(Strips::most_rows), out = up_to(i % 7 ? 70 : 300),
                in = up_to(i % 5 ? 40 : 1000);
    const bool adds = drawn() % 2 == 0;
    const auto x = drawn_elements(m * in, drawn), weight = drawn_elements(out * in, drawn);
    auto y = drawn_elements(m * out, drawn), expected = y;
    parallel_gemm<float>(m, out, in, 1, {x.data(), in}, {weight.data(), in, true}, adds ? 1 : 0,
                         Matrix<float>{expected.data(), out});
    Strips(weight.data(), out, in).multiply(m, x.data(), adds, y.data());
    CAPTURE(m);
    CAPTURE(out);
    CAPTURE(in);
    CAPTURE(adds);
    if (product_rows_are_independent) {
      CHECK(y == expected);
    } else {
      for (std::size_t j = 0; j < y.size(); ++j)
        CHECK(y[j] == doctest::Approx(expected[j]).epsilon(1e-4));
    }
  }
}

TEST_CASE("strips have the same bits for any number of threads, and nothing is read without rows") {
  std::mt19937_64 drawn(3);
  const Index out = 1000, in = 700;
  const auto x = drawn_elements(2 * in, drawn), weight = drawn_elements(out * in, drawn);
  const Strips strips(weight.data(), out, in);
  std::vector<float> one(static_cast<std::size_t>(2 * out)), three = one;
  const int before = threads();
  set_threads(1);
  strips.multiply(2, x.data(), false, one.data());
  set_threads(3);
  strips.multiply(2, x.data(), false, three.data());
  set_threads(before);
  CHECK(one == three);
  strips.multiply(0, nullptr, true, nullptr);
}

}  // namespace qkv::kernels
