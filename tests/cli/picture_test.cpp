#include "cli/picture.h"

#include <doctest/doctest.h>

using namespace qkv;

namespace {

const HeatMap map = {{{0.25, 0.75}}, {"a"}, {"x", "y"}};

}  // namespace

TEST_CASE("a picture stands under its title") {
  CHECK(in_terminal({.title = "weights", .content = map}, Colours::none, 80) ==
        "weights\n      x     y \na  0.25  0.75 \n");
}

TEST_CASE("a title gives a terminal no commands") {
  CHECK(in_terminal({.title = "of \"\033[31m\"", .content = map}, Colours::none, 80)
            .starts_with("of \"␛[31m\"\n"));
}

TEST_CASE("a picture that needs colours is left out where there are none") {
  const Picture picture = {.title = "weights", .content = map, .needs_colours = true};
  CHECK(in_terminal(picture, Colours::none, 80).empty());
  for (const Colours colours : {Colours::basic, Colours::indexed, Colours::full})
    CHECK(in_terminal(picture, colours, 80).find('\033') != std::string::npos);
}
