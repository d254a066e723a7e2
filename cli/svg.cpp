#include "cli/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numbers>
#include <optional>
#include <span>

#include "datasets/text.h"
#include "inspect/block_average.h"
#include "inspect/colour.h"

namespace qkv {
namespace {

constexpr std::string_view beginning_of_svg = "<!-- A picture that qkv drew -->\n<svg ";
constexpr std::string_view ink = "#1d1d1f", soft = "#6e6e73", line_colour = "#c8c8ce";
constexpr double text_size = 12, small_text = 10, line_height = 1.3;

/// Elements of SVG, of which the top left corner is at 0, 0.
struct Drawing {
  std::string elements;
  double width = 0, height = 0;
};

struct Point {
  double x, y;
};

/// The shortest form of a coordinate, to a tenth.
std::string coordinate(double v) {
  return fmt::format("{}", std::round(v * 10) / 10 + 0.0);
}

/// Character data: escaped, and without the characters that XML does not allow.
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

/// About the width of a text in a sans-serif font.
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

std::string text_at(Point at, const std::string& text, double size,
                    std::string_view attributes = "") {
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

std::string hex(const Colour& c) {
  return fmt::format("#{:02x}{:02x}{:02x}", std::lround(c.red), std::lround(c.green),
                     std::lround(c.blue));
}

/// What the shades of a map mean.
struct Scale {
  double largest = 1;
  bool has_two_signs = false;

  bool operator==(const Scale&) const = default;

  /// Of values over the largest, of which the small ones differ most. Larger values are darker.
  Colour colour(double fraction) const {
    static constexpr std::array<Colour, 5> one_sign = {
        {{245, 245, 250}, {199, 210, 254}, {129, 140, 248}, {67, 56, 202}, {30, 27, 75}}};
    static constexpr std::array<Colour, 5> two_signs = {
        {{30, 64, 175}, {96, 165, 250}, {248, 248, 251}, {248, 113, 113}, {153, 27, 27}}};
    const double raised = std::pow(std::min(std::abs(fraction), 1.0), 0.7);
    if (has_two_signs) return between(two_signs, (1 + std::copysign(raised, fraction)) / 2);
    return between(one_sign, fraction > 0 ? raised : 0);
  }
};

/// With as many decimals as tell a hundredth of the largest, and no zero before the point.
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

/// Without zeros at the end: ".3" of 1.
std::string tick(double value, double largest) {
  std::string text = short_number(value, largest);
  if (text.find('.') == text.npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

constexpr std::size_t most_cells = 128;

/// What is drawn of a map: of one that is too large, block averages.
struct Blocks {
  HeatMap map;
  bool are_averages = false;
};

Blocks blocks_of(const HeatMap& map) {
  const std::size_t rows = map.cells.size(), columns = rows ? map.cells[0].size() : 0;
  if (rows <= most_cells && columns <= most_cells) return {map};
  std::vector<double> values;
  for (const auto& row : map.cells) values.insert(values.end(), row.begin(), row.end());
  const Tensor matrix =
      Tensor::from(values, {static_cast<Index>(rows), static_cast<Index>(columns)}, DType::float64);
  return {{rows_of(block_average(matrix, most_cells, most_cells)),
           {},
           {},
           map.largest,
           map.has_two_signs},
          true};
}

/// Parameters have no labels, and a scale up to their largest block.
Blocks blocks_of(const Weights& weights) {
  const Tensor blocks = block_average(weights.values, most_cells, most_cells);
  HeatMap map{rows_of(blocks), {}, {}, 1, true};
  map.largest = largest_absolute(map.cells);
  return {map, blocks.size() < weights.values.size()};
}

/// Draws the cells of a map and the labels beside them.
class MapDrawer {
 public:
  explicit MapDrawer(const Blocks& blocks)
      : map_(blocks.map),
        is_averaged_(blocks.are_averages),
        rows_(map_.cells.size()),
        columns_(rows_ ? map_.cells[0].size() : 0),
        scale_{map_.largest, map_.has_two_signs},
        width_(cell_size(columns_)),
        height_(std::min(cell_size(rows_), width_)) {
    abbreviate(map_.rows, longest_row_label);
    abbreviate(map_.columns, longest_column_label);
    constexpr double beside = 6;
    if (!map_.rows.empty()) left_ = widest_text(map_.rows, row_text()) + beside;
    const double widest = widest_text(map_.columns, column_text());
    angle_ = widest <= width_ - 3 ? 0 : width_ > 16 ? 45 : 90;
    const double upright = widest * std::sin(radians()) + column_text();
    if (!map_.columns.empty()) top_ = upright + beside;
  }

  Drawing drawing() const {
    Drawing result;
    result.elements = labels() + cells() + outline();
    result.width = std::max(left_ + across(), right_of_labels());
    result.height = top_ + down();
    if (!is_averaged_) return result;
    result.height += text_size;
    result.elements += text_at({left_, result.height}, "averages over blocks of cells", small_text,
                               fmt::format("fill=\"{}\"", soft));
    return result;
  }

 private:
  static constexpr int longest_row_label = 44, longest_column_label = 24;
  static constexpr double with_value = 32;  // the side of a cell that holds its value

  static void abbreviate(std::vector<std::string>& labels, int width) {
    for (std::string& label : labels) label = abbreviated(in_one_line(label), width);
  }

  static double cell_size(std::size_t count) {
    return count <= 12 ? with_value : count <= 24 ? 22 : count <= 48 ? 14 : count <= 80 ? 10 : 7;
  }
  double row_text() const { return std::min(text_size, height_); }
  double column_text() const { return std::min(text_size, width_); }
  double radians() const { return angle_ * std::numbers::pi / 180; }
  double across() const { return width_ * static_cast<double>(columns_); }
  double down() const { return height_ * static_cast<double>(rows_); }
  Point corner(std::size_t r, std::size_t c) const {
    return {left_ + width_ * static_cast<double>(c), top_ + height_ * static_cast<double>(r)};
  }
  Point middle(std::size_t r, std::size_t c) const {
    const auto [x, y] = corner(r, c);
    return {x + width_ / 2, y + height_ / 2};
  }

  double right_of_labels() const {
    double right = 0;
    for (std::size_t c = 0; c < map_.columns.size(); ++c) {
      const double width = text_width(map_.columns[c], column_text());
      right = std::max(right, corner(0, c).x + width_ / 2 +
                                  (angle_ > 0 ? width * std::cos(radians()) : width / 2));
    }
    return right;
  }

  std::string labels() const {
    std::string text;
    for (std::size_t r = 0; r < map_.rows.size(); ++r)
      text += text_at({left_ - 6, middle(r, 0).y + row_text() * 0.35}, map_.rows[r], row_text(),
                      "text-anchor=\"end\"");
    for (std::size_t c = 0; c < map_.columns.size(); ++c) {
      const Point at = {middle(0, c).x, top_ - 6};
      text += text_at(at, map_.columns[c], column_text(),
                      angle_ > 0 ? fmt::format("dy=\".3em\" transform=\"rotate(-{} {} {})\"",
                                               angle_, coordinate(at.x), coordinate(at.y))
                                 : "text-anchor=\"middle\"");
    }
    return text;
  }

  /// What stands in a cell: the value where there is room for it, else the sign of those below 0,
  /// whose colours are as dark as those above.
  std::string inscription(double value) const {
    constexpr double least = 0.02;
    if (std::isnan(value) || height_ < 14) return "";
    if (width_ >= with_value) return short_number(value, scale_.largest);
    return scale_.has_two_signs && value / scale_.largest <= -least ? "−" : "";
  }

  std::string cells() const {
    std::string shades = fmt::format("<g class=\"cells\" stroke=\"#fff\" stroke-width=\"{}\">\n",
                                     width_ >= 14 ? "1" : ".2"),
                texts = "<g class=\"values\" text-anchor=\"middle\">\n";
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::size_t c = 0; c < map_.cells[r].size(); ++c) {
        const double value = map_.cells[r][c];
        const Colour colour =
            std::isnan(value) ? Colour{255, 255, 255} : scale_.colour(value / scale_.largest);
        shades += rectangle(corner(r, c), width_, height_, fmt::format("fill=\"{}\"", hex(colour)));
        const std::string text = inscription(value);
        if (text.empty()) continue;
        const bool is_dark =
            0.2126 * colour.red + 0.7152 * colour.green + 0.0722 * colour.blue < 140;
        const auto [x, y] = middle(r, c);
        texts +=
            text_at({x, y + small_text * 0.35}, text, small_text, is_dark ? "fill=\"#fff\"" : "");
      }
    return shades + "</g>\n" + texts + "</g>\n";
  }

  std::string outline() const {
    return rectangle({left_, top_}, across(), down(),
                     fmt::format("fill=\"none\" stroke=\"{}\"", line_colour));
  }

  HeatMap map_;
  bool is_averaged_;
  std::size_t rows_, columns_;
  Scale scale_;
  double width_, height_;      // of a cell
  double left_ = 0, top_ = 0;  // of the cells
  double angle_ = 0;           // at which labels of columns rise, in degrees
};

/// The shades from the least to the largest value, with some values below them.
Drawing legend(const Scale& scale) {
  constexpr double height = 10, above = 14, beside = 16;
  const double width = scale.has_two_signs ? 240 : 140, least = scale.has_two_signs ? -1 : 0;
  const auto x = [&](double fraction) { return beside + width * (fraction - least) / (1 - least); };
  Drawing drawing = {"<g class=\"legend\" text-anchor=\"middle\">\n", width + 2 * beside,
                     above + height + small_text * 1.6};
  constexpr int shades = 40;
  for (int i = 0; i < shades; ++i) {
    const double from = least + (1 - least) * i / shades, step = (1 - least) / shades;
    drawing.elements += rectangle({x(from), above}, width / shades + 0.3, height,
                                  fmt::format("fill=\"{}\"", hex(scale.colour(from + step / 2))));
  }
  for (const double fraction : {-1.0, -0.3, 0.0, 0.3, 1.0})
    if (fraction >= least)
      drawing.elements += text_at({x(fraction), above + height + small_text * 1.2},
                                  tick(fraction * scale.largest, scale.largest), small_text);
  drawing.elements += "</g>\n";
  return drawing;
}

/// Told apart by people with colour-blindness, and by dashes and shapes in grey.
std::string_view colour_of(std::size_t i) {
  static constexpr std::array<std::string_view, 8> palette = {
      "#4e79d8", "#e8871e", "#2f9e6e", "#d6568f", "#8b6fd6", "#b08a1e", "#3aa6b9", "#c4553b"};
  return palette[i % palette.size()];
}

/// Circle, square, triangle or diamond around a point.
std::string mark(std::size_t i, Point at) {
  static constexpr std::array<std::string_view, 4> shapes = {
      "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "m-3.5-3.5h7v7h-7z", "m0-4.5l4.5 8h-9z",
      "m0-5l4.5 5l-4.5 5l-4.5-5z"};
  return fmt::format("<path d=\"M{} {}{}\" fill=\"{}\" stroke=\"#fff\" stroke-width=\".7\"/>\n",
                     coordinate(at.x), coordinate(at.y), shapes[(i + i / 8) % shapes.size()],
                     colour_of(i));
}

Drawing drawn(const HeatMap& map) {
  return MapDrawer(blocks_of(map)).drawing();
}

Drawing drawn(const Curves& curves) {
  const HeatMap& map = curves.values;
  constexpr double left = 36, width = 320, height = 200, top = 8, sample = 26;
  static constexpr std::array<std::string_view, 4> dashes = {"", "6 4", "2 3", "8 3 2 3"};
  double low = 0;
  for (const auto& row : map.cells)
    for (const double value : row)
      if (std::isfinite(value)) low = std::min(low, std::floor(value / map.largest * 4) / 4);
  const auto y = [&](double fraction) { return top + height * (1 - fraction) / (1 - low); };
  const auto x = [&](std::size_t step) {
    return left + width * (static_cast<double>(step) + 0.5) /
                      static_cast<double>(std::max<std::size_t>(map.columns.size(), 1));
  };
  Drawing drawing = {"", left + width, top + height};
  for (double level = low; level <= 1; level += 0.25) {
    drawing.elements += line({left, y(level)}, {left + width, y(level)}, line_colour);
    drawing.elements += text_at({left - 6, y(level) + 4}, tick(level * map.largest, map.largest),
                                small_text, "text-anchor=\"end\"");
  }
  const double room = width / static_cast<double>(std::max<std::size_t>(map.columns.size(), 1));
  const bool fit = widest_text(map.columns, text_size) < room - 6;
  for (std::size_t c = 0; c < map.columns.size(); ++c) {
    const Point at = {x(c), top + height + 16};
    drawing.elements +=
        text_at(at, map.columns[c], text_size,
                fit ? "text-anchor=\"middle\""
                    : fmt::format("text-anchor=\"end\" transform=\"rotate(-45 {} {})\"",
                                  coordinate(at.x), coordinate(at.y)));
  }
  drawing.height += fit ? 24 : 24 + widest_text(map.columns, text_size) * 0.71;
  for (std::size_t r = 0; r < map.cells.size(); ++r) {
    std::string path, marks;
    for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
      const double value = map.cells[r][c] / map.largest;
      if (!std::isfinite(value)) continue;
      const Point at = {x(c), y(value)};
      const bool begins = c == 0 || !std::isfinite(map.cells[r][c - 1]);
      path += fmt::format("{}{} {}", begins ? "M" : "L", coordinate(at.x), coordinate(at.y));
      marks += mark(r, at);
    }
    const std::string stroke =
        fmt::format("stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"", colour_of(r),
                    dashes[r % dashes.size()]);
    const double at = top + 10 + 20 * static_cast<double>(r), from = left + width + 16;
    drawing.elements +=
        fmt::format("<path class=\"line\" d=\"{}\" fill=\"none\" {}/>\n{}", path, stroke, marks);
    drawing.elements += fmt::format("<path d=\"M{} {}h{}\" {}/>\n", coordinate(from),
                                    coordinate(at), sample, stroke) +
                        mark(r, {from + sample / 2, at}) +
                        text_at({from + sample + 6, at + 4}, map.rows[r], text_size);
    drawing.width = std::max(drawing.width, from + sample + 6 + text_width(map.rows[r], text_size));
    drawing.height = std::max(drawing.height, at + 10);
  }
  return drawing;
}

/// The labels of kinds in the order of their first points.
std::vector<std::string> kinds_of(const Scatter& scatter) {
  std::vector<std::string> kinds;
  for (const std::string& label : scatter.labels)
    if (!is_numbered(label) && std::ranges::find(kinds, label) == kinds.end())
      kinds.push_back(label);
  return kinds;
}

/// A sentence's number in a ring.
std::string numbered_mark(Point at, const std::string& label) {
  return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"8\" fill=\"#fff\" stroke=\"{}\"/>\n",
                     coordinate(at.x), coordinate(at.y), ink) +
         text_at({at.x, at.y + 3.5}, label.substr(1, label.size() - 2), small_text,
                 "text-anchor=\"middle\" font-weight=\"bold\"");
}

/// The coordinate at the end of an axis.
std::string end_of_axis(double v) {
  return fmt::format("{}{:.3g}", v < 0 ? "−" : "", std::abs(v));
}

Drawing drawn(const Scatter& scatter) {
  constexpr double left = 24, width = 400, height = 300, inset = 14;
  const auto limits = bounds(scatter);
  const auto fraction = [&](std::size_t i, std::size_t axis) {
    const double low = limits[0][axis], high = limits[1][axis];
    return high > low ? (scatter.points[i][axis] - low) / (high - low) : 0.5;
  };
  const auto at = [&](std::size_t i) {
    return Point{left + inset + (width - 2 * inset) * fraction(i, 0),
                 height - inset - (height - 2 * inset) * fraction(i, 1)};
  };
  Drawing drawing = {
      rectangle({left, 0}, width, height, fmt::format("fill=\"none\" stroke=\"{}\"", line_colour)),
      left + width, height + 40};
  const auto kinds = kinds_of(scatter);
  std::string points, numbers;
  for (std::size_t i = 0; i < scatter.points.size(); ++i) {
    const std::string& label = scatter.labels[i];
    if (is_numbered(label))
      numbers += numbered_mark(at(i), label);
    else
      points +=
          mark(static_cast<std::size_t>(std::ranges::find(kinds, label) - kinds.begin()), at(i));
  }
  drawing.elements += fmt::format("<g class=\"points\">\n{}{}</g>\n", points, numbers);
  for (const std::size_t end : {0u, 1u}) {
    const double far = static_cast<double>(end);
    const std::string anchor = fmt::format("text-anchor=\"{}\"", end ? "end" : "start");
    drawing.elements +=
        text_at({left + width * far, height + 16}, end_of_axis(limits[end][0]), small_text, anchor);
    const Point upright = {left - 8, height * (1 - far)};
    drawing.elements += text_at(upright, end_of_axis(limits[end][1]), small_text,
                                fmt::format("{} transform=\"rotate(-90 {} {})\"", anchor,
                                            coordinate(upright.x), coordinate(upright.y)));
  }
  drawing.elements += text_at({left + width / 2, height + 18}, scatter.axes[0], text_size,
                              "text-anchor=\"middle\"");
  drawing.elements += text_at({left - 8, height / 2}, scatter.axes[1], text_size,
                              fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 {} {})\"",
                                          coordinate(left - 8), coordinate(height / 2)));
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const Point name = {left + width + 30, 14 + 20 * static_cast<double>(k)};
    drawing.elements += mark(k, {name.x - 12, name.y - 4}) + text_at(name, kinds[k], text_size);
    drawing.width = std::max(drawing.width, name.x + text_width(kinds[k], text_size));
    drawing.height = std::max(drawing.height, name.y + 10);
  }
  return drawing;
}

Drawing drawn(const Weights& weights) {
  return MapDrawer(blocks_of(weights)).drawing();
}

std::optional<Scale> scale_of(const Picture& picture) {
  if (const auto* map = std::get_if<HeatMap>(&picture.content))
    return Scale{map->largest, map->has_two_signs};
  if (const auto* weights = std::get_if<Weights>(&picture.content)) {
    const HeatMap map = blocks_of(*weights).map;
    return Scale{map.largest, map.has_two_signs};
  }
  return std::nullopt;
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
  const auto scale = scale_of(picture);
  if (scale && with_legend) add_below(result, legend(*scale));
  return result;
}

/// The scale of the maps, where they have one.
std::optional<Scale> common_scale(const std::vector<Picture>& pictures) {
  std::optional<Scale> common;
  for (const Picture& picture : pictures) {
    const auto scale = scale_of(picture);
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

std::string svg(const std::string& title, const std::vector<Picture>& pictures) {
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
  return beginning.starts_with(beginning_of_svg);
}

}  // namespace qkv
