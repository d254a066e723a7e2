#include "cli/heat_map.h"

#include <doctest/doctest.h>

#include <algorithm>

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

int widest_line(const std::string& text) {
  int widest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    widest = std::max(widest, display_width(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return widest;
}

}  // namespace

TEST_CASE("a small map names its columns and shows two digits") {
  CHECK(heat_map({{{0.25, 0.75}}, {"a"}, {"x", "bank"}}, Colours::none, 80) ==
        "      x  bank \n"
        "a  0.25  0.75 \n");
}

TEST_CASE("a heat map keeps within the terminal whatever the number of words") {
  for (const std::size_t words : {2, 9, 12, 30, 40, 90})
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
