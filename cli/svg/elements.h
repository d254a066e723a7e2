#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Elements of SVG, as text. Lengths are in pixels.
namespace qkv::svg_elements {

inline constexpr std::string_view ink = "#1d1d1f", soft = "#6e6e73", line_colour = "#c8c8ce";
inline constexpr double text_size = 12, small_text = 10;

/// Elements, of which the top left corner is at 0, 0.
struct Drawing {
  std::string elements;
  double width = 0, height = 0;
};

struct Point {
  double x, y;
};

/// The shortest form of a coordinate, to a tenth.
std::string coordinate(double v);
/// Character data: escaped, and without the characters that XML does not allow.
std::string xml(const std::string& text);
/// About the width of a text in a sans-serif font.
double text_width(const std::string& text, double size);
double widest_text(const std::vector<std::string>& texts, double size);

std::string text_at(Point at, const std::string& text, double size,
                    std::string_view attributes = "");
std::string line(Point a, Point b, std::string_view colour);
std::string rectangle(Point at, double width, double height, std::string_view attributes);

std::string moved(const Drawing& drawing, Point to);
void add_below(Drawing& drawing, const Drawing& other);

/// A value with as many decimals as tell a hundredth of the largest, and no zero before the point.
std::string short_number(double value, double largest);
/// Without zeros at the end: ".3" of 1.
std::string tick(double value, double largest);

}  // namespace qkv::svg_elements
