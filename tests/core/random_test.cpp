#include "core/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace qkv::tests {

TEST_CASE("random values are a pure function of seed, purpose, step, stream and index") {
  const Random a(1, Purpose::dropout, 5);
  CHECK(a.bits(10) == Random(1, Purpose::dropout, 5).bits(10));
  CHECK(a.bits(10) != a.bits(11));
  CHECK(a.bits(10) != Random(2, Purpose::dropout, 5).bits(10));
  CHECK(a.bits(10) != Random(1, Purpose::shuffling, 5).bits(10));
  CHECK(a.bits(10) != Random(1, Purpose::dropout, 6).bits(10));
  CHECK(a.bits(10) != Random(1, Purpose::dropout, (std::uint64_t{1} << 32) + 5).bits(10));
  Random b = a, c = a;
  CHECK(b.next().bits(10) == c.next().bits(10));
  CHECK(b.next().bits(10) != a.bits(10));
}

TEST_CASE("random values have the moments of their distributions") {
  const Random random(3, Purpose::testing);
  double uniform = 0, normal = 0, square = 0;
  constexpr int n = 20'000;
  for (std::uint64_t i = 0; i < n; ++i) {
    uniform += random.uniform(i);
    normal += random.normal(i);
    square += random.normal(i) * random.normal(i);
  }
  CHECK(uniform / n == doctest::Approx(0.5).epsilon(0.01));
  CHECK(std::abs(normal / n) < 0.02);
  CHECK(square / n == doctest::Approx(1).epsilon(0.02));
}

TEST_CASE("a permutation holds every index once and differs between steps") {
  auto order = Random(1, Purpose::shuffling, 0).permutation(100);
  CHECK(order != Random(1, Purpose::shuffling, 1).permutation(100));
  std::ranges::sort(order);
  for (Index i = 0; i < 100; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

}  // namespace qkv::tests
