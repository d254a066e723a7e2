#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/drawing.h"

namespace qkv {

/// A value that an axis names, and where on it.
struct Tick {
  double position;  ///< from 0 to 1
  std::string label;
};

/// An axis of a plot: numbers on a linear or logarithmic scale, or categories.
class Axis {
 public:
  /// From the least to the greatest finite value, a linear one from tick to tick. Where the least
  /// is not above 0 there are no logarithms, and the axis is linear.
  static Axis of_numbers(std::string name, std::span<const double> values, bool is_log = false);
  /// The values are indices of the labels.
  static Axis of_categories(std::string name, const std::vector<std::string>& labels);

  const std::string& name() const { return name_; }
  const std::vector<Tick>& ticks() const { return ticks_; }
  /// The position of a value, from 0 to 1; 0 for NaN.
  double at(double value) const;

 private:
  Axis(std::string name, double low, double high, bool is_log)
      : name_(std::move(name)), low_(low), high_(high), is_log_(is_log) {}
  void add_tick(double value);
  void add_linear_ticks();
  void add_log_ticks();

  std::string name_;
  double low_, high_;  ///< the logarithms in case of such a scale
  bool is_log_;
  std::vector<Tick> ticks_ = {};
};

/// A rectangle with an axis below and one to the left.
struct Frame {
  Axis x, y;
  double width, height;

  Point at(double at_x, double at_y) const {
    return {width * x.at(at_x), height * (1 - y.at(at_y))};
  }
  /// Lines with the attributes `grid` at the ticks, their labels, and the names of the axes.
  Drawing drawing(std::string_view grid = "class=\"grid\"") const;
};

}  // namespace qkv
