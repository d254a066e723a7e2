#include "core/random.h"

#include <Random123/philox.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

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

TEST_CASE("random values are Random123's, one at a time and any number of them from any index") {
  const std::uint64_t seed = 0x123456789ABCDEF0, step = 0x2BCDEF012345;
  Random random(seed, Purpose::dropout, step);
  random.next();
  const Random stream = random.next();
  const auto expected = [&](std::uint64_t index) {
    const std::uint64_t block = index / 4;
    const r123::Philox4x32::ctr_type counter = {
        {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(step),
         static_cast<std::uint32_t>(block >> 32 << 14 | step >> 32),
         static_cast<std::uint32_t>(Purpose::dropout) << 24 | 2}};
    return r123::Philox4x32()(counter, {{static_cast<std::uint32_t>(seed),
                                         static_cast<std::uint32_t>(seed >> 32)}})[index % 4];
  };
  // The second is near where the counter's lowest word overflows.
  for (const std::uint64_t begin : {std::uint64_t{0}, (std::uint64_t{1} << 34) - 150})
    for (std::uint64_t first = begin; first < begin + 6; ++first)
      for (std::size_t count = 0; count < 300; ++count) {
        std::vector<std::uint32_t> values(count + 1, 7);
        stream.bits(first, std::span(values).first(count));
        std::size_t wrong = values[count] != 7;
        for (std::size_t i = 0; i < count; ++i) wrong += values[i] != expected(first + i);
        REQUIRE(wrong == 0);
        REQUIRE(stream.bits(first + count) == expected(first + count));
      }
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
