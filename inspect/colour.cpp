#include "inspect/colour.h"

#include <algorithm>

namespace qkv {

Colour between(std::span<const Colour> stops, double position) {
  const double scaled = std::clamp(position, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(scaled), stops.size() - 2);
  const double t = scaled - static_cast<double>(i);
  const auto mix = [t](double a, double b) { return a + t * (b - a); };
  const Colour &a = stops[i], &b = stops[i + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

}  // namespace qkv
