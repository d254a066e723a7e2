#include "cli/svg.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace qkv;

namespace {

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

/// The groups of this class, without what they hold in groups of their own.
std::string groups(const std::string& text, const std::string& name) {
  std::string found;
  const std::string begin = "<g class=\"" + name + "\"";
  for (auto at = text.find(begin); at != text.npos; at = text.find(begin, at + 1))
    found += text.substr(at, text.find("</g>", at) - at);
  return found;
}

std::string cells_of(const std::string& text) {
  return groups(text, "cells");
}

/// Whether every element that begins ends, in the right order.
bool is_balanced(const std::string& text) {
  std::vector<std::string> open;
  for (auto at = text.find('<'); at != text.npos; at = text.find('<', at + 1)) {
    const auto end = text.find('>', at);
    if (end == text.npos) return false;
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.starts_with("!--") || tag.ends_with("/")) continue;
    if (!tag.starts_with("/")) {
      open.push_back(tag.substr(0, tag.find(' ')));
    } else {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    }
  }
  return open.empty();
}

std::string drawn(const HeatMap& map) {
  return svg("qkv test", {{.title = "a map", .content = map}});
}

HeatMap map_of(std::size_t rows, std::size_t columns, double value = 0.25) {
  return {std::vector(rows, std::vector(columns, value)), std::vector<std::string>(rows, "word"),
          std::vector<std::string>(columns, "word")};
}

/// From 0 for black to 255, of the colours of a map's cells.
std::vector<double> luminances(const std::string& text) {
  std::vector<double> found;
  const std::string cells = cells_of(text), fill = "fill=\"#";
  for (auto at = cells.find(fill); at != cells.npos; at = cells.find(fill, at + 1)) {
    const int rgb = std::stoi(cells.substr(at + fill.size(), 6), nullptr, 16);
    found.push_back(0.2126 * (rgb >> 16) + 0.7152 * (rgb >> 8 & 255) + 0.0722 * (rgb & 255));
  }
  return found;
}

}  // namespace

TEST_CASE("labels and titles are text, never markup, and hold no character that XML refuses") {
  const std::string text = svg(
      "<title> & more", {{.title = "\"a\" < b: c & d",
                          .content = HeatMap{{{1}}, {"<b>&amp;\x1b[0m\xff"}, {"\xEF\xBF\xBF\n"}}}});
  CHECK(is_balanced(text));
  CHECK(text.find("&lt;title&gt; &amp; more") != text.npos);
  CHECK(text.find("&quot;a&quot; &lt; b</text>") != text.npos);
  CHECK(text.find("&lt;b&gt;&amp;amp;␛[0m\xEF\xBF\xBD</text>") != text.npos);
  CHECK(text.find("\xEF\xBF\xBD↵</text>") != text.npos);
  for (const char c : text) CHECK((c == '\n' || static_cast<unsigned char>(c) >= ' '));
}

TEST_CASE("a map has a rectangle for each cell and a text for each label") {
  const std::string text = drawn({{{0.5, 0.25, 0}, {1, 0, 0}}, {"a", "b"}, {"x", "y", "z"}});
  CHECK(count(cells_of(text), "<rect ") == 6);
  for (const char* label : {"a", "b", "x", "y", "z"})
    CHECK(count(text, ">" + std::string(label) + "</text>") == 1);
  for (const char* value : {"0.50", "0.25", "1.00"})
    CHECK(count(groups(text, "values"), ">" + std::string(value)) == 1);
}

TEST_CASE("maps without cells and values that are not finite are drawn") {
  const double infinity = std::numeric_limits<double>::infinity();
  HeatMap signs = {{{std::nan(""), infinity, -infinity}}, {"a"}, {"x", "y", "z"}};
  signs.has_two_signs = true;
  const HeatMap weights = {{{0, 0}}, {"a"}, {"x", "y"}};
  for (const HeatMap& map : {signs, weights, map_of(1, 1), map_of(0, 0), map_of(2, 0), HeatMap{}}) {
    const std::string text = drawn(map);
    CHECK(is_balanced(text));
    CHECK(count(cells_of(text), "<rect ") ==
          (map.cells.empty() ? 0 : map.cells.size() * map.cells[0].size()));
    CHECK(text.find("nan") == text.npos);
  }
}

TEST_CASE("more of a value is darker, and small weights can be told from none") {
  const auto weights =
      luminances(drawn({{{0, 0.02, 0.1, 0.3, 0.6, 1}}, {"a"}, std::vector<std::string>(6, "x")}));
  REQUIRE(weights.size() == 6);
  CHECK(weights[0] > 240);
  for (std::size_t i = 1; i < weights.size(); ++i) CHECK(weights[i] < weights[i - 1] - 3);
  HeatMap map = {{{0, 0.02, 0.1, 0.3, 0.6, 1}, {-0.0, -0.02, -0.1, -0.3, -0.6, -1}},
                 {"above", "below"},
                 std::vector<std::string>(6, "x")};
  map.has_two_signs = true;
  const auto signs = luminances(drawn(map));
  REQUIRE(signs.size() == 12);
  for (const std::size_t row : {0u, 6u})
    for (std::size_t i = row + 1; i < row + 6; ++i) CHECK(signs[i] < signs[i - 1] - 3);
}

TEST_CASE("a map without room for values shows which are below 0, also in grey") {
  HeatMap map = map_of(20, 20, -0.5);
  map.has_two_signs = true;
  CHECK(count(groups(drawn(map), "values"), ">−</text>") == 400);
}

TEST_CASE("each scale of the maps has one legend") {
  const Picture one = {.title = "one", .content = map_of(2, 2)};
  HeatMap other = map_of(2, 2);
  other.largest = 4;
  CHECK(count(svg("", {one, one}), "class=\"legend\"") == 1);
  CHECK(count(svg("", {one, one, {.title = "other", .content = other}}), "class=\"legend\"") == 2);
}

TEST_CASE("a map of more than 128 rows or columns is drawn as block averages, and says so") {
  const std::string text = drawn(map_of(300, 200));
  CHECK(count(cells_of(text), "<rect ") == 128 * 128);
  CHECK(text.find("averages over blocks") != text.npos);
  CHECK(drawn(map_of(128, 128)).find("averages") == std::string::npos);
}

TEST_CASE("weights in more rows than are drawn are block averages, too") {
  const std::string text = svg("", {{.title = "w", .content = Weights{Tensor::full({200, 3}, 1)}}});
  CHECK(count(cells_of(text), "<rect ") == 128 * 3);
  CHECK(text.find("averages over blocks") != text.npos);
}

TEST_CASE("weights are a map without labels whose scale ends at their largest absolute value") {
  const std::string text =
      svg("", {{.title = "w", .content = Weights{Tensor::from({-0.5, 0.25, 0}, {3})}}});
  CHECK(count(cells_of(text), "<rect ") == 3);
  CHECK(text.substr(text.find("class=\"legend\"")).find(">-0.50</text>") != std::string::npos);
}

TEST_CASE("pictures that do not fit one row begin another") {
  const std::string text =
      svg("", std::vector<Picture>(4, {.title = "of three a row", .content = map_of(2, 9)}));
  std::vector<std::string> heights;  // of panels, whose title follows
  for (auto at = text.find(")\">\n<title>"); at != text.npos;
       at = text.find(")\">\n<title>", at + 1)) {
    const auto space = text.rfind(' ', at);
    heights.push_back(text.substr(space, at - space));
  }
  REQUIRE(heights.size() == 4);
  CHECK(heights[0] == heights[2]);
  CHECK(heights[0] != heights[3]);
}

TEST_CASE("a scatter has a mark for each point and a name for each kind") {
  const Scatter scatter = {
      {{0, 0}, {1, 1}, {2, 0}}, {"money", "<river>", "(7)"}, {"first", "second"}};
  const std::string text = svg("", {{.title = "s", .content = scatter}});
  CHECK(is_balanced(text));
  CHECK(count(groups(text, "points"), "<circle") == 2);
  CHECK(count(groups(text, "numbers"), "<circle") == 1);
  for (const char* label : {"money", "&lt;river&gt;", "7", "first", "second"})
    CHECK(count(text, ">" + std::string(label) + "</text>") == 1);
  CHECK(is_balanced(svg("", {{.title = "s", .content = Scatter{}}})));
}

TEST_CASE("a curve has a circle for each point, a line, a mark and names") {
  const Curve curve = {.x = {0.01, 0.1, 1},
                       .points = {30, 20, 10},
                       .line = {30, 25, 20},
                       .mark = 1,
                       .axis = "<rate>",
                       .points_name = "loss",
                       .line_name = "mean",
                       .mark_name = "best"};
  const std::string text = svg("", {{.title = "c", .content = curve}});
  CHECK(is_balanced(text));
  CHECK(count(groups(text, "points"), "<circle") == 3);
  for (const char* label : {"&lt;rate&gt;", "loss", "mean", "best", "0.01", "0.1", "1", "20"})
    CHECK(count(text, ">" + std::string(label) + "</text>") == 1);
}

TEST_CASE("an SVG begins as one that may be replaced by another") {
  CHECK(begins_as_svg(drawn(map_of(1, 1))));
  CHECK_FALSE(begins_as_svg("<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>"));
}
