#include "train/config/sweep_points.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/random.h"
#include "train/config/config.h"

namespace qkv {
namespace {

struct Shown {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{:g}", value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const TextList& value) const {
    return value.empty() ? "none" : fmt::format("{}", fmt::join(value, " + "));
  }
  std::string operator()(const auto&) const { return "?"; }  // no option takes it
};

/// A point from a value for each axis.
TomlTable point_of(const TomlSweep& sweep, std::span<const Value> values) {
  TomlTable point{sweep.line, {}};
  std::string name;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [key, line, kind, list] = sweep.axes[i];
    name += fmt::format("{}{} {}", i ? ", " : "", key.substr(key.rfind('.') + 1),
                        std::visit(Shown(), values[i]));
    point.entries.push_back({key, line, values[i]});
  }
  point.entries.insert(point.entries.begin(), {"name", sweep.line, name});
  return point;
}

Value drawn(const TomlAxis& axis, double uniform) {
  if (axis.kind == TomlAxis::Kind::list)
    return axis.values[static_cast<std::size_t>(uniform * static_cast<double>(axis.values.size()))];
  const bool is_log = axis.kind == TomlAxis::Kind::log_range;
  const auto whole = [](const Value& value) { return std::holds_alternative<std::int64_t>(value); };
  const bool integers = std::ranges::all_of(axis.values, whole);
  double low = *number_in(axis.values[0]), high = *number_in(axis.values[1]);
  if (integers) high += 1;
  if (is_log) low = std::log(low), high = std::log(high);
  const double place = low + uniform * (high - low);
  const double number = is_log ? std::exp(place) : place;
  if (integers)
    return std::min(static_cast<std::int64_t>(number), std::get<std::int64_t>(axis.values[1]));
  return std::stod(fmt::format("{:.3g}", number));
}

}  // namespace

std::vector<TomlTable> grid_of(std::span<const TomlSweep> sweeps, std::string_view source) {
  constexpr std::size_t most = 100'000;
  std::vector<TomlTable> points;
  for (const TomlSweep& sweep : sweeps) {
    std::size_t count = 1;
    for (const TomlAxis& axis : sweep.axes) {
      require<ConfigError>(axis.kind == TomlAxis::Kind::list,
                           "{}:{}: the range of {} has no grid; give a list of values, or draw "
                           "points with qkv sweep --trials N",
                           source, axis.line, axis.key);
      count *= axis.values.size();
      require<ConfigError>(count <= most, "{}:{}: this grid has more than {} points", source,
                           sweep.line, most);
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<Value> values;
      std::size_t left = count, place = i;
      for (const TomlAxis& axis : sweep.axes) {  // the last option varies fastest
        left /= axis.values.size();
        values.push_back(axis.values[place / left]);
        place %= left;
      }
      points.push_back(point_of(sweep, values));
    }
  }
  return points;
}

std::vector<TomlTable> random_points(std::span<const TomlSweep> sweeps, Index count,
                                     std::uint64_t seed) {
  constexpr Index tries = 100;  // lists may have fewer points
  Random random(seed, Purpose::sampling);
  std::vector<TomlTable> points;
  std::set<std::string> names;
  for (Index i = 0; i < tries * count && std::ssize(points) < count; ++i) {
    const TomlSweep& sweep = sweeps[static_cast<std::size_t>(i) % sweeps.size()];
    const Random stream = random.next();
    std::vector<Value> values;
    for (std::size_t axis = 0; axis < sweep.axes.size(); ++axis)
      values.push_back(drawn(sweep.axes[axis], stream.uniform(axis)));
    TomlTable point = point_of(sweep, values);
    if (names.insert(std::get<std::string>(point.entries.front().value)).second)
      points.push_back(std::move(point));
  }
  return points;
}

std::vector<TomlTable> crossed(std::span<const TomlTable> variants,
                               std::span<const TomlTable> points) {
  std::vector<TomlTable> tables;
  for (const TomlTable& variant : variants)
    for (const TomlTable& point : points) {
      TomlTable table = variant;
      const auto name = std::ranges::find(table.entries, "name", &TomlEntry::key);
      const auto* text =
          name == table.entries.end() ? nullptr : std::get_if<std::string>(&name->value);
      if (text)  // else the variant is refused where it is read
        name->value =
            fmt::format("{}, {}", *text, std::get<std::string>(point.entries.front().value));
      table.entries.insert(table.entries.end(), point.entries.begin() + 1, point.entries.end());
      tables.push_back(std::move(table));
    }
  if (variants.empty()) tables.assign(points.begin(), points.end());
  return tables;
}

}  // namespace qkv
