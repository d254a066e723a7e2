#include "core/weight_format.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/error.h"

namespace qkv::tests {

TEST_CASE("int8 holds each value of a row to half of its scale, and the largest exactly") {
  std::mt19937_64 drawn(5);
  for (int i = 0; i < 100; ++i) {
    std::normal_distribution<float> normal(0, std::pow(10.0F, static_cast<float>(i % 9 - 4)));
    std::vector<float> row(1 + drawn() % 40);
    for (float& value : row) value = normal(drawn);
    std::vector<std::int8_t> integers(row.size());
    const float scale = to_int8(row, integers);
    int largest = 0;
    for (std::size_t j = 0; j < row.size(); ++j) {
      CHECK(std::abs(row[j] - scale * static_cast<float>(integers[j])) <= .5001F * scale);
      largest = std::max(largest, std::abs(integers[j]));
    }
    CHECK(largest == 127);
  }
}

TEST_CASE("int8 holds zeros, and refuses what is not finite") {
  std::array<std::int8_t, 3> integers = {1, 1, 1};
  CHECK(to_int8(std::array{0.0F, -0.0F, 0.0F}, integers) == 0);
  CHECK(integers == std::array<std::int8_t, 3>{});
  for (const float value : {std::numeric_limits<float>::infinity(), std::nanf("")})
    CHECK_THROWS_AS(to_int8(std::array{1.0F, value, 0.0F}, integers), ValueError);
}

}  // namespace qkv::tests
