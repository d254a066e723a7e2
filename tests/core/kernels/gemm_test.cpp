#include "core/kernels/gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "core/parallel.h"
#include "core/random.h"

namespace qkv::kernels {
namespace {

/// One product C = alpha A B + beta C, the operands in the upper left corner of wider matrices.
struct Problem {
  Index m, n, k;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 0;
  Index gap = 0;  ///< elements between the end of a row and the start of the next

  Index stride_a() const { return (transpose_a ? m : k) + gap; }
  Index stride_b() const { return (transpose_b ? k : n) + gap; }
  Index stride_c() const { return n + gap; }
};

std::vector<float> random_elements(Index count, std::uint64_t seed) {
  const Random random(seed, Purpose::testing);
  std::vector<float> elements(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] = static_cast<float>(random.uniform(i) - 0.5);
  return elements;
}

struct Operands {
  explicit Operands(const Problem& p)
      : a(random_elements((p.transpose_a ? p.k : p.m) * p.stride_a(), 1)),
        b(random_elements((p.transpose_b ? p.n : p.k) * p.stride_b(), 2)),
        c(random_elements(p.m * p.stride_c(), 3)) {}
  std::vector<float> a, b, c;
};

using Gemm = void (*)(Index, Index, Index, float, Matrix<const float>, Matrix<const float>, float,
                      Matrix<float>);

/// C after the product of rows [begin, end).
std::vector<float> product(const Problem& p, Gemm gemm, Index begin, Index end) {
  Operands x(p);
  gemm(end - begin, p.n, p.k, p.alpha,
       {x.a.data() + begin * (p.transpose_a ? 1 : p.stride_a()), p.stride_a(), p.transpose_a},
       {x.b.data(), p.stride_b(), p.transpose_b}, p.beta,
       Matrix<float>{x.c.data() + begin * p.stride_c(), p.stride_c()});
  return x.c;
}

std::vector<float> product(const Problem& p, Gemm gemm) {
  return product(p, gemm, 0, p.m);
}

std::vector<float> expected(const Problem& p) {
  Operands x(p);
  const auto at = [](const std::vector<float>& matrix, Index stride, bool transposed, Index i,
                     Index j) {
    return static_cast<double>(
        matrix[static_cast<std::size_t>(transposed ? j * stride + i : i * stride + j)]);
  };
  for (Index i = 0; i < p.m; ++i)
    for (Index j = 0; j < p.n; ++j) {
      double sum = 0;
      for (Index l = 0; l < p.k; ++l)
        sum +=
            at(x.a, p.stride_a(), p.transpose_a, i, l) * at(x.b, p.stride_b(), p.transpose_b, l, j);
      float& c = x.c[static_cast<std::size_t>(i * p.stride_c() + j)];
      c = static_cast<float>(p.alpha * sum + p.beta * static_cast<double>(c));
    }
  return x.c;
}

/// Few rows of A, which threads multiply panel by panel, and few columns of B: drawn around the
/// sizes of tiles, vectors, panels and blocks.
std::vector<Problem> problems_of_few_rows_or_columns() {
  const Random random(4, Purpose::testing);
  std::uint64_t draws = 0;
  const auto one_of = [&]<class T>(std::initializer_list<T> values) {
    return values.begin()[random.bits(draws++) % values.size()];
  };
  std::vector<Problem> all;
  while (all.size() < 60)
    all.push_back({.m = one_of({1, 1, 2, 5, 6, 7, 8, 9}),
                   .n = one_of({12, 13, 24, 25, 47, 48, 49, 63, 64, 65, 95, 96, 97, 300, 768}),
                   .k = one_of({0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 128, 448, 449, 900}),
                   .transpose_a = one_of({false, true}),
                   .transpose_b = one_of({false, true}),
                   .alpha = one_of({1.0F, 1.0F, -0.5F}),
                   .beta = one_of({0.0F, 1.0F, 0.25F}),
                   .gap = one_of({0, 0, 1, 16, 70})});
  const std::vector<Problem> rows = all;
  for (Problem p : rows) {
    std::swap(p.m, p.n);
    all.push_back(p);
  }
  return all;
}

/// Sizes around those of tiles, panels and blocks, and beyond the limits of what is read in place.
std::vector<Problem> problems() {
  std::vector<Problem> all = {{0, 5, 3}, {5, 0, 3}, {5, 3, 0}, {5, 3, 0, false, false, 1, 0.5f}};
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      for (const auto& [m, n, k] : {std::array<Index, 3>{1, 1, 1},
                                    {7, 15, 5},
                                    {8, 16, 8},
                                    {9, 17, 33},
                                    {17, 48, 64},
                                    {49, 49, 20},
                                    {100, 130, 70},
                                    {64, 40, 449},
                                    {127, 64, 129},
                                    {128, 64, 128},
                                    {131, 67, 129},
                                    {200, 300, 250},
                                    {30, 100, 1000},
                                    {9, 700, 896}})
        all.push_back({m, n, k, a, b});
      all.push_back({20, 30, 40, a, b, 2, 1, 7});
      all.push_back({70, 90, 500, a, b, -0.5f, 0.25f, 3});
    }
  std::ranges::copy(problems_of_few_rows_or_columns(), std::back_inserter(all));
  return all;
}

double worst_difference(const std::vector<float>& x, const std::vector<float>& y) {
  REQUIRE(x.size() == y.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
  return worst;
}

std::string label(const Problem& p) {
  return fmt::format("{} x {} x {}{}{}", p.m, p.n, p.k, p.transpose_a ? ", A transposed" : "",
                     p.transpose_b ? ", B transposed" : "");
}

}  // namespace

TEST_CASE("gemm gives the product, and touches nothing beside it") {
  for (const Problem& p : problems()) {
    CAPTURE(label(p));
    CHECK(worst_difference(product(p, gemm<float>), expected(p)) < 3e-5);
  }
}

TEST_CASE("parallel_gemm gives the product, with the same bits on any number of threads") {
  const int before = threads();
  for (const Problem& p : problems()) {
    CAPTURE(label(p));
    set_threads(1);
    const auto alone = product(p, parallel_gemm<float>);
    CHECK(worst_difference(alone, expected(p)) < 3e-5);
    for (const int count : {2, 5}) {
      set_threads(count);
      CHECK(product(p, parallel_gemm<float>) == alone);
    }
  }
  set_threads(before);
}

TEST_CASE("gemm stays on the calling thread, and parallel_gemm on those of the library") {
  const int before = threads();
  set_threads(1);
  const auto tasks = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  const auto running = tasks();
  const Problem large{600, 600, 600};
  product(large, gemm<float>);
  product(large, parallel_gemm<float>);
  CHECK(tasks() == running);
  set_threads(before);
}

namespace {

/// False, with a message, where the engine does not promise what a test proves.
bool rows_are_independent() {
  if (!product_rows_are_independent)
    MESSAGE("skipped: only the engine of -DQKV_GEMM=own promises it");
  return product_rows_are_independent;
}

}  // namespace

TEST_CASE("parallel_gemm gives the bits of gemm") {
  if (!rows_are_independent()) return;
  for (const Problem& p : problems()) {
    CAPTURE(label(p));
    CHECK(product(p, parallel_gemm<float>) == product(p, gemm<float>));
  }
}

TEST_CASE("rows computed one by one have the bits of rows computed together") {
  if (!rows_are_independent()) return;
  for (const Problem& p : problems()) {
    CAPTURE(label(p));
    const auto together = product(p, gemm<float>);
    for (Index i = 0; i < p.m; i += std::max<Index>(p.m / 5, 1)) {
      const auto alone = product(p, gemm<float>, i, i + 1);
      const auto row = i * p.stride_c();
      CHECK(std::equal(alone.begin() + row, alone.begin() + row + p.n, together.begin() + row));
    }
  }
}

}  // namespace qkv::kernels
