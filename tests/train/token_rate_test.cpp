#include "train/metrics/token_rate.h"

#include <doctest/doctest.h>

using namespace qkv;

TEST_CASE("the rate leaves out the first step of a process and restarts after an evaluation") {
  TokenRate rate;
  CHECK(rate.tokens_per_second() == 0);
  rate.add(100, 10);  // starts threads
  CHECK(rate.tokens_per_second() == 10);
  rate.add(100, 0.5);
  rate.add(100, 1.5);
  CHECK(rate.tokens_per_second() == 100);
  rate.restart();
  CHECK(rate.tokens_per_second() == 100);
  rate.add(300, 1);
  CHECK(rate.tokens_per_second() == 300);
}
