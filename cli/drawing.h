#pragma once

#include <span>
#include <string>
#include <string_view>

namespace qkv {

inline constexpr double text_size = 12, small_text = 10;

/// A place in a drawing, in pixels from its origin to the right and down.
struct Point {
  double x, y;
};

/// Text for XML and HTML, in one line.
std::string xml(const std::string& text);

/// The approximate width of a text in a sans-serif font.
double text_width(const std::string& text, double size);
/// A text abbreviated to about this width in small letters.
std::string fitting(const std::string& text, double width);

/// Marks of SVG, and the rectangle around them and the origin. A mark's title is its tooltip.
class Drawing {
 public:
  void rect(Point corner, double width, double height, std::string_view attributes);
  void circle(Point middle, double radius, std::string_view attributes,
              const std::string& title = "");
  /// Line segments from each point to the next.
  void line(std::span<const Point> points, std::string_view attributes,
            const std::string& title = "");
  /// `anchor`: "start", "middle" or "end" of the text is at the point. An upright text reads from
  /// the bottom to the top.
  void text(Point at, const std::string& text, double size = text_size,
            std::string_view anchor = "start", std::string_view attributes = "",
            bool is_upright = false);
  /// Adds another drawing as a group, its top left corner at `corner`.
  void add(const Drawing& other, Point corner, std::string_view attributes = "");
  void add(const std::string& elements) { elements_ += elements; }

  const std::string& elements() const { return elements_; }
  Point corner() const { return {left_, top_}; }
  double width() const { return right_ - left_; }
  double height() const { return bottom_ - top_; }

  /// An image for an HTML page, described by `label`.
  std::string in_page(const std::string& label) const;

 private:
  void include(Point corner, double width, double height);

  std::string elements_;
  double left_ = 0, top_ = 0, right_ = 0, bottom_ = 0;
};

}  // namespace qkv
