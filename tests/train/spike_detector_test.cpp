#include "train/metrics/spike_detector.h"

#include <doctest/doctest.h>

using namespace qkv;

TEST_CASE("a norm more than ten times the mean is a spike, once in a hundred steps") {
  SpikeDetector spikes;
  CHECK(!spikes.add(100));
  for (int i = 0; i < 99; ++i) CHECK(!spikes.add(1));
  // The mean of the first hundred norms is 1.99.
  CHECK(!spikes.add(19));
  CHECK(spikes.add(50).value() == doctest::Approx(50 / (1.99 + (19 - 1.99) / 100)));
  for (int i = 0; i < 99; ++i) CHECK(!spikes.add(i % 2 ? 1 : 1000));
  CHECK(!spikes.add(1));
  CHECK(spikes.add(1e9));
}

TEST_CASE("the first steps have no mean to compare with") {
  SpikeDetector spikes;
  for (int i = 0; i < 20; ++i) CHECK(!spikes.add(i ? 1000 : 1));
  SpikeDetector zeros;
  for (int i = 0; i < 50; ++i) CHECK(!zeros.add(0));
  CHECK(!zeros.add(1));
}
