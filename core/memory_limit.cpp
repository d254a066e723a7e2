#include "core/memory_limit.h"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/control_group.h"
#include "core/platform.h"

namespace qkv {
std::uint64_t memory_limit() {
  return std::min(platform::memory(), group_limits().memory);
}

std::string memory_size(double bytes) {
  constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{:.0f} bytes", bytes);
  std::size_t unit = 0;
  for (bytes /= 1024; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::optional<double> parse_memory_size(std::string_view text) {
  constexpr auto units = std::to_array<std::pair<std::string_view, double>>({
      {"B", 1},
      {"KB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
      {"KiB", 0x1p10},
      {"MiB", 0x1p20},
      {"GiB", 0x1p30},
      {"TiB", 0x1p40},
  });
  double number = 0;
  const auto [end, error] = fast_float::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number <= 0) return std::nullopt;
  std::string_view name(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (name.starts_with(' ')) name.remove_prefix(1);
  const auto unit = std::ranges::find(units, name, [](const auto& u) { return u.first; });
  if (unit == units.end()) return std::nullopt;
  return number * unit->second;
}

}  // namespace qkv
