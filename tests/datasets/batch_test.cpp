#include "datasets/batch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "core/error.h"

using namespace qkv;

TEST_CASE("shorter sentences are filled up with padding") {
  const std::vector<std::vector<std::int32_t>> sentences = {{5, 6, 7}, {8}};
  const TokenBatch batch = pad(sentences);
  CHECK(batch.ids.shape() == Shape{2, 3});
  CHECK(std::ranges::equal(batch.ids.data(), std::vector{5, 6, 7, 8, 0, 0}));
  CHECK(std::ranges::equal(batch.lengths.data(), std::vector{3, 1}));
}

TEST_CASE("windows of a text come with the token after each of theirs") {
  const std::vector<std::int32_t> text = {5, 6, 7, 8, 9};
  const WindowBatch batch = windows(text, std::vector<Index>{2, 0}, 2);
  CHECK(batch.ids.shape() == Shape{2, 2});
  CHECK(std::ranges::equal(batch.ids.data(), std::vector{7, 8, 5, 6}));
  CHECK(std::ranges::equal(batch.next.data(), std::vector{8, 9, 6, 7}));
}

TEST_CASE("a window that reaches beyond the text is refused") {
  const std::vector<std::int32_t> text = {5, 6, 7, 8, 9};
  for (const Index start : {Index{-1}, Index{3}, std::numeric_limits<Index>::max()})
    CHECK_THROWS_AS(windows(text, std::vector{start}, 2), ValueError);
  CHECK_THROWS_AS(windows(text, std::vector<Index>{0}, 0), ValueError);
  CHECK_THROWS_AS(windows(text, std::vector<Index>{0}, 5), ValueError);
  CHECK_THROWS_AS(windows(text, std::vector<Index>{0}, std::numeric_limits<Index>::max()),
                  ValueError);
}

TEST_CASE("an epoch shows every example once, and batches reach across epochs") {
  BatchSampler sampler(7, 3, 1);
  std::vector<Index> seen;
  for (std::int64_t step = 0; step < 14; ++step)
    for (const Index i : sampler.at(step)) seen.push_back(i);
  REQUIRE(seen.size() == 42);
  for (auto epoch = seen.begin(); epoch != seen.end(); epoch += 7) {
    std::vector<Index> sorted(epoch, epoch + 7);
    std::ranges::sort(sorted);
    CHECK(sorted == std::vector<Index>{0, 1, 2, 3, 4, 5, 6});
  }
}

TEST_CASE("every epoch has an order of its own") {
  BatchSampler sampler(100, 100, 1);
  CHECK(sampler.at(0) != sampler.at(1));
}

TEST_CASE("a batch depends on seed and step, not on what was asked before") {
  BatchSampler in_order(50, 8, 3), at_once(50, 8, 3), other_seed(50, 8, 4);
  for (std::int64_t step = 0; step < 20; ++step) in_order.at(step);
  const auto batch = at_once.at(20);
  CHECK(in_order.at(20) == batch);
  CHECK(other_seed.at(20) != batch);
}

TEST_CASE("a step whose examples cannot be counted is refused") {
  BatchSampler sampler(50, 65536, 1);
  for (const std::int64_t step :
       {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max() / 65536, std::numeric_limits<std::int64_t>::max()})
    CHECK_THROWS_AS(sampler.at(step), ValueError);
  CHECK(sampler.at(std::numeric_limits<std::int64_t>::max() / 65536 - 1).size() == 65536);
}

TEST_CASE("a permutation takes each value once, whatever its size") {
  for (Index n = 1; n <= 200; ++n) {
    CAPTURE(n);
    const Permutation order(n, Random(static_cast<std::uint64_t>(n % 3), Purpose::shuffling, 7));
    std::vector<bool> seen(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) {
      REQUIRE(order(i) >= 0);
      REQUIRE(order(i) < n);
      REQUIRE_FALSE(seen[static_cast<std::size_t>(order(i))]);
      seen[static_cast<std::size_t>(order(i))] = true;
    }
  }
  const Index large = Index{1} << 40;
  const Permutation order(large, Random(1, Purpose::shuffling));
  for (Index i = 0; i < 100; ++i) CHECK(order(i) < large);
}

TEST_CASE("a permutation sends every pair of values to every pair equally often") {
  constexpr Index n = 6, draws = 3000;
  std::map<std::pair<Index, Index>, double> counts;
  for (std::uint64_t seed = 0; seed < draws; ++seed) {
    const Permutation order(n, Random(seed, Purpose::shuffling));
    ++counts[{order(1), order(4)}];
  }
  CHECK(counts.size() == n * (n - 1));
  double chi_square = 0;
  constexpr double expected = static_cast<double>(draws) / (n * (n - 1));
  for (const auto& [pair, count] : counts)
    chi_square += (count - expected) * (count - expected) / expected;
  CHECK(chi_square < 58.3);  // 29 degrees of freedom, p = 0.001
}

TEST_CASE("nothing can be drawn from nothing") {
  CHECK_THROWS_AS(BatchSampler(0, 8, 1), ValueError);
  CHECK_THROWS_AS(BatchSampler(8, 0, 1), ValueError);
  CHECK_THROWS_AS(Permutation(0, Random(1, Purpose::shuffling)), ValueError);
  CHECK_THROWS_AS(pad(std::vector<std::vector<std::int32_t>>()), ValueError);
}
