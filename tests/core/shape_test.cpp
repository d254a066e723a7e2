#include "core/shape.h"

#include <doctest/doctest.h>

#include "core/error.h"

namespace qkv::tests {

TEST_CASE("shapes refuse negative sizes, too many axes and products that overflow") {
  CHECK_THROWS_AS((Shape{2, -1}), ShapeError);
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1, 1}), ShapeError);
  const Index large = Index{1} << 40;
  CHECK_THROWS_AS((Shape{large, large}), ShapeError);
}

}  // namespace qkv::tests
