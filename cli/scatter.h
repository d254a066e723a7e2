#pragma once

#include <array>
#include <string>
#include <vector>

namespace qkv {

/// Points with a label each: "(1)" for a sentence, others for all points of a kind.
struct Scatter {
  std::vector<std::array<double, 2>> points;
  std::vector<std::string> labels;
  std::array<std::string, 2> axes = {};
};

/// Whether a label is that of a sentence.
bool is_numbered(const std::string& label);
/// The least and the greatest coordinates; 0 without points.
std::array<std::array<double, 2>, 2> bounds(const Scatter& scatter);

/// Points on a grid of characters. The label of a sentence shows its number, every other label a
/// letter of its own, which a legend explains; numbers cover letters.
std::string scatter_plot(const Scatter& scatter, int width, int height);

}  // namespace qkv
