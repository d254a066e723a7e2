#include "cli/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "cli/terminal.h"

namespace qkv {
namespace {

/// The least and the greatest finite value, a little apart; 0 and 1 without any.
std::pair<double, double> range_of(std::span<const double> values) {
  std::vector<double> finite;
  std::ranges::copy_if(values, std::back_inserter(finite),
                       [](double value) { return std::isfinite(value); });
  if (finite.empty()) return {0, 1};
  const auto [low, high] = std::ranges::minmax(finite);
  if (low < high) return {low, high};
  const double margin = low == 0 ? 0.5 : 0.1 * std::abs(low);
  return {low - margin, high + margin};
}

/// The least of 1, 2, 5, 10, 20, ... times a power of ten that divides a range into at most
/// `most` steps.
double step_of(double range, double most) {
  const double power = std::pow(10, std::floor(std::log10(range / most)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power * most >= range) return factor * power;
  return 10 * power;
}

}  // namespace

Axis Axis::of_numbers(std::string name, std::span<const double> values, bool is_log) {
  const auto [low, high] = range_of(values);
  if (is_log && low > 0) {
    Axis axis(std::move(name), std::log10(low), std::log10(high), true);
    axis.add_log_ticks();
    return axis;
  }
  Axis axis(std::move(name), low, high, false);
  axis.add_linear_ticks();
  return axis;
}

Axis Axis::of_categories(std::string name, const std::vector<std::string>& labels) {
  Axis axis(std::move(name), -0.5, static_cast<double>(labels.size()) - 0.5, false);
  for (std::size_t i = 0; i < labels.size(); ++i)
    axis.ticks_.push_back({axis.at(static_cast<double>(i)), labels[i]});
  return axis;
}

double Axis::at(double value) const {
  const double fraction = ((is_log_ ? std::log10(value) : value) - low_) / (high_ - low_);
  return fraction > 0 ? std::min(fraction, 1.0) : 0;
}

void Axis::add_tick(double value) {
  ticks_.push_back({at(value), fmt::format("{:.6g}", value)});
}

void Axis::add_linear_ticks() {
  const double step = step_of(high_ - low_, 5);
  const auto first = std::llround(std::floor(low_ / step + 1e-9)),
             last = std::llround(std::ceil(high_ / step - 1e-9));
  low_ = static_cast<double>(first) * step;
  high_ = static_cast<double>(last) * step;
  for (auto i = first; i <= last; ++i) add_tick(static_cast<double>(i) * step);
}

/// Powers of ten or, where there is at most one, also twice and five times these.
void Axis::add_log_ticks() {
  const auto add = [&](std::initializer_list<double> factors) {
    for (double power = std::floor(low_); power <= high_; ++power)
      for (const double factor : factors) {
        const double value = factor * std::pow(10, power), logarithm = std::log10(value);
        if (logarithm >= low_ - 1e-9 && logarithm <= high_ + 1e-9) add_tick(value);
      }
  };
  add({1});
  if (ticks_.size() > 1) return;
  ticks_.clear();
  add({1, 2, 5});
}

Drawing Frame::drawing(std::string_view grid) const {
  Drawing drawing;
  const double between = width / static_cast<double>(std::max<std::size_t>(x.ticks().size(), 1));
  double left = 0;
  for (const auto& [position, label] : x.ticks()) {
    const double at = width * position;
    drawing.line(std::array{Point{at, 0}, Point{at, height}}, grid);
    drawing.text({at, height + 16}, fitting(label, between), small_text, "middle");
  }
  for (const auto& [position, label] : y.ticks()) {
    const double at = height * (1 - position);
    const std::string text = abbreviated(label, 30);
    drawing.line(std::array{Point{0, at}, Point{width, at}}, grid);
    drawing.text({-8, at + small_text / 3}, text, small_text, "end");
    left = std::max(left, text_width(text, small_text));
  }
  drawing.text({width / 2, height + 36}, x.name(), text_size, "middle");
  drawing.text({-left - 16, height / 2}, y.name(), text_size, "middle", "", true);
  return drawing;
}

}  // namespace qkv
