#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/xtensor.h"
#include "tests/core/op_cases.h"
#include "tests/core/reference/reference.h"

namespace qkv::tests {
namespace {

reference::Arrays arrays_of(const In& inputs) {
  reference::Arrays arrays;
  for (const Tensor& x : inputs) arrays.emplace_back(xtensor_view<double>(x));
  return arrays;
}

/// The largest |a - b| / max(1, |b|); NaN when there is one.
double worst_difference(const Tensor& a, const Tensor& b) {
  const auto x = a.data<double>(), y = b.data<double>();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = std::fabs(x[i] - y[i]) / std::max(1.0, std::fabs(y[i]));
    if (std::isnan(difference)) return difference;
    worst = std::max(worst, difference);
  }
  return worst;
}

}  // namespace

TEST_CASE("every op has the values of a naive formula in xtensor") {
  for (const OpCase& sample : op_cases()) {
    CAPTURE(sample.label());
    const auto oracle = reference::oracles().find(sample.label());
    CHECK(oracle != reference::oracles().end());
    if (oracle == reference::oracles().end()) continue;
    const In inputs = inputs_of(sample, DType::float64);
    const Tensor expected = from_xtensor(oracle->second(arrays_of(inputs)));
    const Tensor y = sample.call(inputs);
    CHECK(y.shape() == expected.shape());
    if (y.shape() == expected.shape()) CHECK(worst_difference(y, expected) < 1e-13);
  }
}

TEST_CASE("every oracle belongs to one row of the table of op samples") {
  std::set<std::string> labels;
  for (const OpCase& sample : op_cases()) {
    CAPTURE(sample.label());
    CHECK(labels.insert(sample.label()).second);
  }
  for (const auto& [label, oracle] : reference::oracles()) {
    CAPTURE(label);
    CHECK(labels.contains(label));
  }
}

}  // namespace qkv::tests
