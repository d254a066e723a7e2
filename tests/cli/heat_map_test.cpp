#include "cli/heat_map.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/widest_line.h"

using namespace qkv;

namespace {

HeatMap map_of(std::size_t words) {
  HeatMap map;
  for (std::size_t i = 0; i < words; ++i) {
    map.rows.push_back("word");
    map.columns.push_back("word");
    map.cells.emplace_back(words, 0.25);
  }
  return map;
}

}  // namespace

TEST_CASE("a small map names its columns and shows two digits") {
  CHECK(heat_map({{{0.25, 0.75}}, {"a"}, {"x", "bank"}}, Colours::none, 80) ==
        "      x  bank \n"
        "a  0.25  0.75 \n");
}

TEST_CASE("a heat map keeps within the terminal whatever the number of words") {
  for (const std::size_t words : {2U, 9U, 12U, 30U, 40U, 90U})
    for (const int width : {40, 80, 132})
      CHECK(widest_line(heat_map(map_of(words), Colours::none, width)) <= width);
}

TEST_CASE("labels are abbreviated before columns are numbered") {
  const std::string text =
      heat_map({{{0.25, 0.75}}, {"a"}, {"photosynthesis", "bank"}}, Colours::none, 22);
  CHECK(widest_line(text) <= 22);
  CHECK(text.find("…") != text.npos);
  CHECK(text.find("0.25") != text.npos);
}

TEST_CASE("a shaded cell is as wide as its column, and a weight of nothing has no shade") {
  const std::string text = heat_map({{{0.5, 0.0}}, {"a"}, {"longword", "b"}}, Colours::full, 80);
  CHECK(text.find("m    0.50 \033[0m") != text.npos);
  CHECK(text.ends_with("\033[0m 0.00 \n"));
}

TEST_CASE("values below 0 are blue and keep the columns") {
  const HeatMap map = {{{-0.25, 0.75}, {1.5, -1}}, {"a", "b"}, {"x", "bank"}};
  CHECK(heat_map(map, Colours::none, 80) ==
        "      x  bank \n"
        "a -0.25  0.75 \n"
        "b  1.50 -1.00 \n");
  CHECK(heat_map(map, Colours::full, 80).find("\033[48;2;30;100;225;38;5;255m-1.00 ") !=
        std::string::npos);
}

TEST_CASE("colours are escapes of 24 bits, of a table of 256, of 16 colours, or none") {
  const HeatMap map = map_of(2);
  CHECK(heat_map(map, Colours::full, 80).find("\033[48;2;") != std::string::npos);
  CHECK(heat_map(map, Colours::indexed, 80).find("\033[48;5;") != std::string::npos);
  CHECK(heat_map(map, Colours::basic, 80).find("\033[100;97m") != std::string::npos);
  CHECK(heat_map(map, Colours::none, 80).find('\033') == std::string::npos);
}

TEST_CASE("shades and tenths are relative to the largest value of a map") {
  const HeatMap small = {{{0.02, 0.04}}, {"a"}, {"x", "y"}, 0.04};
  const HeatMap usual = {{{0.5, 1}}, {"a"}, {"x", "y"}};
  const auto shades_of = [](std::string text) {
    for (auto at = text.find('m'); at != text.npos; at = text.find('m', at + 1))
      text.erase(at + 1, text.find('\033', at) - at - 1);
    return text.substr(text.find('\033'));
  };
  CHECK(shades_of(heat_map(small, Colours::full, 80)) ==
        shades_of(heat_map(usual, Colours::full, 80)));
  HeatMap wide = map_of(40);
  wide.largest = 0.5;
  CHECK(heat_map(wide, Colours::none, 60).find("5555") != std::string::npos);
}

TEST_CASE("values of any size keep the columns, and a missing one is blank") {
  const double infinity = std::numeric_limits<double>::infinity(), none = std::nan("");
  const HeatMap map = {{{1234.5, 1e30}, {-infinity, none}}, {"a", "b"}, {"x", "y"}};
  CHECK(heat_map(map, Colours::none, 80) ==
        "      x     y \n"
        "a  1234 1e+30 \n"
        "b  -inf       \n");
  HeatMap wide = map_of(90);
  wide.cells[0] = std::vector<double>(90, none);
  wide.cells[1] = std::vector<double>(90, infinity);
  wide.cells[2] = std::vector<double>(90, -infinity);
  const std::string text = heat_map(wide, Colours::none, 132);
  CHECK(text.find("999") != text.npos);
  CHECK(text.find("---") != text.npos);
  CHECK(heat_map({}, Colours::full, 80).find("nan") == std::string::npos);
}

TEST_CASE("the largest of a map is a finite value above 0") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(largest_absolute({{0.5, -2}, {std::nan(""), infinity}}) == 2);
  CHECK(largest_absolute({{0, 0}}) == 1);
  CHECK(largest_absolute({}) == 1);
}

TEST_CASE("a weight map shows two rows a line and shrinks to the width") {
  const std::string text = weight_map(Tensor::full({4, 300}, 1), Colours::full, 50);
  CHECK(std::ranges::count(text, '\n') == 2);
  std::size_t blocks = 0;
  for (auto at = text.find("▀"); at != text.npos; at = text.find("▀", at + 1)) ++blocks;
  CHECK(blocks == 2 * 50);
}

TEST_CASE("a spark line's bars grow with the counts, and a count that is not zero shows") {
  CHECK(spark_line({0, 1, 50, 100}) == " ▁▄█");
  CHECK(spark_line({0, 0}) == "  ");
}
