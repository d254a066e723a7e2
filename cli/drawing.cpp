#include "cli/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/terminal.h"
#include "inspect/report/encode.h"

namespace qkv {
namespace {

/// The end of an element, which holds its tooltip if it has one.
std::string end_of(std::string_view element, const std::string& title) {
  if (title.empty()) return "/>\n";
  return fmt::format("><title>{}</title></{}>\n", xml(title), element);
}

}  // namespace

std::string xml(const std::string& text) {
  return report::html_text(in_one_line(text));
}

double text_width(const std::string& text, double size) {
  const auto wide = std::ranges::count_if(text, [](unsigned char c) {
    return std::isupper(c) || std::string_view("mw%@").find(static_cast<char>(c)) < 4;
  });
  return size * (0.57 * display_width(text) + 0.42 * static_cast<double>(wide));
}

std::string fitting(const std::string& text, double width) {
  return abbreviated(text, std::max(static_cast<int>(width / (0.6 * small_text)), 2));
}

void Drawing::rect(Point corner, double width, double height, std::string_view attributes) {
  elements_ +=
      fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}/>\n",
                  corner.x, corner.y, width, height, attributes);
  include(corner, width, height);
}

void Drawing::circle(Point middle, double radius, std::string_view attributes,
                     const std::string& title) {
  elements_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" {}", middle.x, middle.y,
                           radius, attributes) +
               end_of("circle", title);
  include({middle.x - radius, middle.y - radius}, 2 * radius, 2 * radius);
}

void Drawing::line(std::span<const Point> points, std::string_view attributes,
                   const std::string& title) {
  std::string places;
  for (const Point& point : points) {
    places += fmt::format("{}{:.1f},{:.1f}", places.empty() ? "" : " ", point.x, point.y);
    include(point, 0, 0);
  }
  elements_ +=
      fmt::format("<polyline points=\"{}\" {}", places, attributes) + end_of("polyline", title);
}

void Drawing::text(Point at, const std::string& text, double size, std::string_view anchor,
                   std::string_view attributes, bool is_upright) {
  elements_ += fmt::format(
      "<text transform=\"translate({:.1f} {:.1f}){}\" font-size=\"{}\" text-anchor=\"{}\" "
      "{}>{}</text>\n",
      at.x, at.y, is_upright ? " rotate(-90)" : "", size, anchor, attributes, xml(text));
  const double length = text_width(text, size), height = size * 1.3;
  const double before = anchor == "start" ? 0 : anchor == "end" ? length : length / 2;
  if (is_upright)
    include({at.x - size, at.y + before - length}, height, length);
  else
    include({at.x - before, at.y - size}, length, height);
}

void Drawing::add(const Drawing& other, Point corner, std::string_view attributes) {
  elements_ += fmt::format("<g {} transform=\"translate({:.1f} {:.1f})\">\n{}</g>\n", attributes,
                           corner.x - other.left_, corner.y - other.top_, other.elements_);
  include(corner, other.width(), other.height());
}

std::string Drawing::in_page(const std::string& label) const {
  constexpr double margin = 2;  // strokes are wider than their shapes
  return fmt::format(
      "<svg viewBox=\"{:.1f} {:.1f} {:.1f} {:.1f}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
      left_ - margin, top_ - margin, width() + 2 * margin, height() + 2 * margin, xml(label),
      elements_);
}

void Drawing::include(Point corner, double width, double height) {
  left_ = std::min(left_, corner.x);
  top_ = std::min(top_, corner.y);
  right_ = std::max(right_, corner.x + width);
  bottom_ = std::max(bottom_, corner.y + height);
}

}  // namespace qkv
