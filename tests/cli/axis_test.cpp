#include "cli/axis.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace qkv;

namespace {

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> all;
  for (const Tick& tick : axis.ticks()) all.push_back(tick.label);
  return all;
}

Axis numbers(const std::vector<double>& values, bool is_log = false) {
  return Axis::of_numbers("x", values, is_log);
}

using Labels = std::vector<std::string>;

}  // namespace

TEST_CASE("a linear axis goes from tick to tick") {
  const Axis axis = numbers({0.31, 0.52, 0.87});
  CHECK(labels(axis) == Labels{"0.2", "0.4", "0.6", "0.8", "1"});
  CHECK(axis.at(0.2) == doctest::Approx(0));
  CHECK(axis.at(0.6) == doctest::Approx(0.5));
  CHECK(axis.at(1) == doctest::Approx(1));
  CHECK(labels(numbers({-2, 3})) == Labels{"-2", "-1", "0", "1", "2", "3"});
  CHECK(labels(numbers({0, 100000})) == Labels{"0", "20000", "40000", "60000", "80000", "100000"});
}

TEST_CASE("a logarithmic axis has powers of ten, and between two of them what is inside") {
  const Axis axis = numbers({1e-4, 1e-1}, true);
  CHECK(labels(axis) == Labels{"0.0001", "0.001", "0.01", "0.1"});
  CHECK(axis.at(1e-3) == doctest::Approx(1.0 / 3));
  CHECK(axis.ticks()[2].position == doctest::Approx(2.0 / 3));
  CHECK(labels(numbers({0.0015, 0.06}, true)) == Labels{"0.002", "0.005", "0.01", "0.02", "0.05"});
}

TEST_CASE("values that have no logarithms have a linear axis") {
  CHECK(labels(numbers({0, 2}, true)) == labels(numbers({0, 2})));
}

TEST_CASE("categories have equal distances, also from the ends") {
  const Axis axis = Axis::of_categories("kind", {"adam", "sgd"});
  CHECK(labels(axis) == Labels{"adam", "sgd"});
  CHECK(axis.at(0) == doctest::Approx(0.25));
  CHECK(axis.ticks()[1].position == doctest::Approx(0.75));
}

TEST_CASE("one value and values that are not finite have places on an axis") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& values : std::vector<std::vector<double>>{{}, {0}, {-3}, {infinity, NAN, 1}})
    for (const bool is_log : {false, true}) {
      const Axis axis = numbers(values, is_log);
      for (const double value : {-infinity, -3.0, 0.0, 1.0, infinity, double(NAN)}) {
        CHECK(axis.at(value) >= 0);
        CHECK(axis.at(value) <= 1);
      }
    }
  CHECK(numbers({5}).at(5) == doctest::Approx(0.5));
}

TEST_CASE("a frame names its axes and each of their ticks") {
  const Frame frame{Axis::of_categories("<kind>", {"a & b"}), numbers({0, 1}), 100, 50};
  const std::string drawn = frame.drawing().in_page("a \"plot\"");
  for (const char* text : {">&lt;kind&gt;</text>", ">a &amp; b</text>", ">0.2</text>",
                           "aria-label=\"a &quot;plot&quot;\""})
    CHECK(drawn.find(text) != drawn.npos);
  CHECK(frame.at(0, 1).x == doctest::Approx(50));
  CHECK(frame.at(0, 1).y == doctest::Approx(0));
}
