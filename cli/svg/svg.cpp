#include "cli/svg/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "cli/svg/charts.h"
#include "cli/svg/map.h"
#include "datasets/text.h"

namespace qkv {
namespace svg_elements {
namespace {

constexpr double line_height = 1.3;
constexpr std::string_view beginning_of_svg = "<!-- A picture that qkv drew -->\n<svg ";

/// That of a map; nothing for a chart.
std::optional<Scale> map_scale(const Picture& picture) {
  return std::visit(
      []<class Content>(const Content& content) -> std::optional<Scale> {
        if constexpr (requires { scale_of(content); })
          return scale_of(content);
        else
          return std::nullopt;
      },
      picture.content);
}

/// A text in lines of at most `width`.
std::vector<std::string> broken(const std::string& text, double width, double size) {
  std::vector<std::string> lines;
  for (const std::string& word : words(text)) {
    const std::string longer = lines.empty() ? word : lines.back() + " " + word;
    if (lines.empty() || text_width(longer, size) > width)
      lines.push_back(word);
    else
      lines.back() = longer;
  }
  return lines;
}

/// The part of a title before its colon in bold, the rest below.
Drawing heading(const std::string& title, double width) {
  const auto colon = std::min(title.find(": "), title.size());
  Drawing drawing;
  const auto add = [&](const std::string& text, double size, std::string_view attributes) {
    for (const std::string& part : broken(text, width, size)) {
      drawing.height += size * line_height;
      drawing.elements += text_at({0, drawing.height}, part, size, attributes);
      drawing.width = std::max(drawing.width, text_width(part, size));
    }
  };
  add(title.substr(0, colon), text_size, "font-weight=\"bold\"");
  add(title.substr(std::min(colon + 2, title.size())), small_text,
      fmt::format("fill=\"{}\"", soft));
  drawing.height += 8;
  return drawing;
}

Drawing panel(const Picture& picture, bool with_legend) {
  constexpr double least = 180;
  const Drawing body =
      std::visit([](const auto& content) { return drawn(content); }, picture.content);
  Drawing result = {"<title>" + xml(picture.title) + "</title>\n"};
  add_below(result, heading(picture.title, std::max(body.width, least)));
  add_below(result, body);
  const auto scale = map_scale(picture);
  if (scale && with_legend) add_below(result, legend(*scale));
  return result;
}

/// The scale of the maps, where they have one.
std::optional<Scale> common_scale(const std::vector<Picture>& pictures) {
  std::optional<Scale> common;
  for (const Picture& picture : pictures) {
    const auto scale = map_scale(picture);
    if (scale && common && scale != common) return std::nullopt;
    if (scale) common = scale;
  }
  return common;
}

/// Places drawings in rows from the left to the right.
class Page {
 public:
  /// Below all others, in as few rows as they fit, of about as many drawings each.
  void add_rows(std::span<const Drawing> drawings) {
    double widest = 0;
    for (const Drawing& drawing : drawings) widest = std::max(widest, drawing.width);
    const auto room = std::max(1.0, (widest_row + beside) / (widest + beside));
    const auto rows = std::ceil(static_cast<double>(drawings.size()) / std::floor(room));
    const auto in_row =
        static_cast<std::size_t>(std::ceil(static_cast<double>(drawings.size()) / rows));
    for (std::size_t i = 0; i < drawings.size(); i += in_row)
      add_row(drawings.subspan(i, std::min(in_row, drawings.size() - i)), rows > 1 ? widest : 0);
  }
  /// Each takes `least` at least.
  void add_row(std::span<const Drawing> drawings, double least = 0) {
    double x = margin, height = 0;
    for (const Drawing& drawing : drawings) {
      elements_ += moved(drawing, {x, bottom_});
      width_ = std::max(width_, x + drawing.width + margin);
      height = std::max(height, drawing.height);
      x += std::max(drawing.width, least) + beside;
    }
    bottom_ += height + beside;
  }
  Drawing drawing() const { return {elements_, width_, bottom_ - beside + margin}; }

 private:
  static constexpr double margin = 16, beside = 28, widest_row = 1280;
  std::string elements_;
  double width_ = 0, bottom_ = margin;
};

Drawing arranged(const std::vector<Picture>& pictures) {
  const auto common = common_scale(pictures);
  std::vector<Drawing> panels;
  panels.reserve(pictures.size());
  for (const Picture& picture : pictures) panels.push_back(panel(picture, !common));
  Page page;
  for (std::size_t begin = 0, end = 0; begin < pictures.size(); begin = end) {
    for (end = begin + 1; end < pictures.size() && !pictures[end].begins_row;) ++end;
    page.add_rows(std::span(panels).subspan(begin, end - begin));
  }
  if (common) page.add_row({{legend(*common)}});
  return page.drawing();
}

}  // namespace
}  // namespace svg_elements

std::string svg(const std::string& title, const std::vector<Picture>& pictures) {
  using namespace svg_elements;
  const Drawing page = arranged(pictures);
  const std::string width = fmt::format("{:.0f}", std::ceil(page.width)),
                    height = fmt::format("{:.0f}", std::ceil(page.height));
  return fmt::format(
      "{0}xmlns=\"http://www.w3.org/2000/svg\" width=\"{1}\" height=\"{2}\" viewBox=\"0 0 {1} "
      "{2}\" "
      "role=\"img\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"{3}\">\n"
      "<title>{4}</title>\n"
      "<rect width=\"{1}\" height=\"{2}\" fill=\"#fff\"/>\n{5}</svg>\n",
      beginning_of_svg, width, height, ink, xml(title), page.elements);
}

bool begins_as_svg(std::string_view beginning) {
  return beginning.starts_with(svg_elements::beginning_of_svg);
}

}  // namespace qkv
