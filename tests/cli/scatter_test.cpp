#include "cli/scatter.h"

#include <doctest/doctest.h>

using namespace qkv;

TEST_CASE("a scatter plot puts points where they are and explains its letters") {
  const std::string plot =
      scatter_plot({{{0, 0}, {1, 1}, {0.99, 0}}, {"money", "river", "(1)"}}, 10, 4);
  CHECK(plot ==
        "         b\n\n\n"
        "a        1\n"
        "a: money  b: river  1, 2, ...: the sentences\n");
}
