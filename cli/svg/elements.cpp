#include "cli/svg/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "datasets/text.h"

namespace qkv::svg_elements {

std::string coordinate(double v) {
  return fmt::format("{}", std::round(v * 10) / 10 + 0.0);
}

std::string xml(const std::string& text) {
  std::string result;
  for_each_character(in_one_line(text), [&](std::string_view c) {
    result += c == "&"   ? "&amp;"
              : c == "<" ? "&lt;"
              : c == ">" ? "&gt;"
              : c == "\xEF\xBF\xBE" || c == "\xEF\xBF\xBF"  // U+FFFE and U+FFFF
                  ? "\xEF\xBF\xBD"
                  : c;
  });
  return result;
}

double text_width(const std::string& text, double size) {
  double em = 0.57 * display_width(text);
  for (const char c : text)
    if (std::string_view("mMW%@").find(c) != std::string_view::npos)
      em += 0.42;
    else if (c == 'w' || (c >= 'A' && c <= 'Z'))
      em += 0.24;
  return em * size;
}

double widest_text(const std::vector<std::string>& texts, double size) {
  double widest = 0;
  for (const std::string& text : texts) widest = std::max(widest, text_width(text, size));
  return widest;
}

std::string text_at(Point at, const std::string& text, double size, std::string_view attributes) {
  return fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\"{}{}>{}</text>\n", coordinate(at.x),
                     coordinate(at.y), coordinate(size), attributes.empty() ? "" : " ", attributes,
                     xml(text));
}

std::string line(Point a, Point b, std::string_view colour) {
  return fmt::format("<path d=\"M{} {}L{} {}\" stroke=\"{}\"/>\n", coordinate(a.x), coordinate(a.y),
                     coordinate(b.x), coordinate(b.y), colour);
}

std::string rectangle(Point at, double width, double height, std::string_view attributes) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}/>\n", coordinate(at.x),
                     coordinate(at.y), coordinate(width), coordinate(height), attributes);
}

std::string moved(const Drawing& drawing, Point to) {
  return fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n", coordinate(to.x),
                     coordinate(to.y), drawing.elements);
}

void add_below(Drawing& drawing, const Drawing& other) {
  drawing.elements += moved(other, {0, drawing.height});
  drawing.height += other.height;
  drawing.width = std::max(drawing.width, other.width);
}

std::string short_number(double value, double largest) {
  if (!std::isfinite(value)) return value > 0 ? "∞" : "−∞";
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(largest)));
  std::string text = decimals < -2 || decimals > 5
                         ? fmt::format("{:.0e}", std::abs(value))
                         : fmt::format("{:.{}f}", std::abs(value), std::clamp(decimals, 0, 3));
  if (text.find_first_not_of("0.") == text.npos || value == 0) return "0";
  if (text.starts_with("0.")) text.erase(0, 1);
  return (value < 0 ? "−" : "") + text;
}

std::string tick(double value, double largest) {
  std::string text = short_number(value, largest);
  if (text.find('.') == text.npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace qkv::svg_elements
