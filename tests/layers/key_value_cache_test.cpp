#include "layers/key_value_cache.h"

#include <doctest/doctest.h>

#include <type_traits>

#include "core/creation.h"
#include "core/ops.h"

using namespace qkv;

namespace {

// A copy would write its tokens behind those that it shares.
static_assert(!std::is_copy_constructible_v<KeyValueCache>);

Tensor rows(Index batch, Index time, double first) {
  std::vector<double> values(static_cast<std::size_t>(batch * time * 2));
  for (double& value : values) value = first++;
  return Tensor::from(values, {batch, time, 2});
}

}  // namespace

TEST_CASE("a tensor that grows holds what was appended, in every number of rows and sequences") {
  for (const Index batch : {1, 2}) {
    GrowingTensor growing;
    Tensor expected;
    for (Index i = 0; i < 12; ++i) {
      const Tensor next = rows(batch, 1 + i % 3, 100.0 * static_cast<double>(i));
      growing.append(next);
      expected = expected ? concatenate({expected, next}, 1) : next;
      CHECK(growing.all().shape() == expected.shape());
      CHECK(growing.all().values() == expected.values());
    }
  }
}

TEST_CASE("what was read of a growing tensor stays as it was") {
  GrowingTensor growing;
  growing.append(rows(1, 2, 0));
  growing.append(rows(1, 1, 50));
  const Tensor before = growing.all();
  const auto values = before.values();
  for (Index i = 0; i < 10; ++i) growing.append(rows(1, 1, 100));
  CHECK(before.values() == values);
}

TEST_CASE("a growing tensor keeps the gradients of what was appended") {
  const Parameter first(rows(1, 1, 1)), second(rows(1, 2, 5));
  GrowingTensor growing;
  growing.append(first * 2);
  growing.append(second * 3);
  const Gradients gradients = gradients_of(sum(growing.all()));
  CHECK(gradients.of(first).values() == std::vector<double>(2, 2));
  CHECK(gradients.of(second).values() == std::vector<double>(4, 3));
}
