#include "layers/initialise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace qkv::tests {
namespace {

struct Moments {
  double mean, std, largest;
};

Moments moments(const Tensor& x) {
  Moments m{0, 0, 0};
  const auto values = x.values();
  for (const double v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.std += v * v / static_cast<double>(values.size());
    m.largest = std::max(m.largest, std::abs(v));
  }
  m.std = std::sqrt(m.std);
  return m;
}

const Random random(1, Purpose::testing);

void check(const Tensor& x, double std, double largest) {
  const Moments m = moments(x);
  CHECK(std::abs(m.mean) < 0.05 * std);
  CHECK(m.std / std == doctest::Approx(1).epsilon(0.02));
  CHECK(m.largest <= largest);
}

}  // namespace

TEST_CASE("initialisers have the standard deviation and the bounds that their papers give") {
  const double inside =
      1 / std::sqrt(3.0);  // of a uniform distribution, as a fraction of its bound
  const double xavier = std::sqrt(6.0 / 300), kaiming = std::sqrt(6.0 / 150);
  check(xavier_uniform(100, 200, random), xavier * inside, xavier);
  check(kaiming_uniform({100, 50, 3}, random), kaiming * inside, kaiming);
  check(uniform({100, 100}, 0.2, random), 0.2 * inside, 0.2);
  check(normal({100, 100}, 0.02, random), 0.02, 0.2);
  check(truncated_normal({100, 100}, 0.02, random), 0.02 * 0.8796, 0.04);
}

}  // namespace qkv::tests
