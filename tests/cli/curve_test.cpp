#include "cli/curve.h"

#include <doctest/doctest.h>

using namespace qkv;

namespace {

const Curve falling = {.x = {1e-3, 1e-2, 1e-1, 1},
                       .points = {4, 3, 1, 90},
                       .line = {4, 3.5, 2, 30},
                       .mark = 1,
                       .axis = "rate",
                       .points_name = "loss",
                       .line_name = "mean",
                       .mark_name = "best"};

}  // namespace

TEST_CASE("a curve has its points, its line, its mark and axes with round values") {
  CHECK(curve_plot(falling, 20, 5) ==
        "     5 ┤           •\n"
        "     4 ┤•\n"
        "     3 ┤    ◆\n"
        "     2 ┤       •\n"
        "     1 ┤       ·\n"
        "       └┴───┴──┴───┴\n"
        "        0.001  0.1 1\n"
        "        → rate   · loss   • mean   ◆ best\n");
}

TEST_CASE("a curve that rises far leaves room for what was before") {
  const Frame frame = frame_of(falling, 1, 1);
  CHECK(frame.y.at(1) == 0);
  CHECK(frame.y.at(5) == doctest::Approx(1));
  CHECK(frame.y.at(90) == 1);
  CHECK(frame.x.at(1e-3) == 0);
  CHECK(frame.x.at(1e-2) == doctest::Approx(1.0 / 3));
}

TEST_CASE("a curve of one point or of equal values is drawn") {
  for (const std::vector<double>& values : {std::vector{0.5}, {0.5, 0.5}}) {
    const Curve flat = {.x = {values.size() == 1 ? std::vector{0.1} : std::vector{0.1, 0.2}},
                        .points = values,
                        .line = values,
                        .mark = {},
                        .axis = "x",
                        .points_name = "y",
                        .line_name = "z",
                        .mark_name = ""};
    const std::string plot = curve_plot(flat, 40, 5);
    CHECK(plot.find("0.5 ┤") != plot.npos);
    CHECK(plot.find("◆") == plot.npos);
  }
}
