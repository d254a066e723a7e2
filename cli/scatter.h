#pragma once

#include <array>
#include <string>
#include <vector>

namespace qkv {

/// Points on a grid of characters. A label such as "(1)" shows its number, every other label a
/// letter of its own, which a legend explains; numbers cover letters.
std::string scatter_plot(const std::vector<std::array<double, 2>>& points,
                         const std::vector<std::string>& labels, int width, int height);

}  // namespace qkv
