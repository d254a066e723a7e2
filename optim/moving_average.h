#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/parameter.h"

namespace qkv {

/// Exponential moving average of parameters over the updates, which often does better than the
/// parameters themselves (Polyak & Juditsky 1992, "Acceleration of Stochastic Approximation by
/// Averaging"): average = decay average + (1 - decay) value, starting at the first values seen.
class MovingAverage {
 public:
  /// Throws ValueError unless `decay` is in [0, 1).
  explicit MovingAverage(double decay);

  /// Takes in the parameters' current values.
  void update(std::span<const NamedParameter> parameters);

  /// The averages by path.
  const std::map<std::string, Tensor>& values() const { return values_; }
  void load(std::map<std::string, Tensor> values) { values_ = std::move(values); }

 private:
  double decay_;
  std::map<std::string, Tensor> values_;
};

/// While alive, parameters hold their averages instead of their own values.
class UseAverage {
 public:
  UseAverage(std::span<const NamedParameter> parameters, const MovingAverage& average);
  ~UseAverage();
  UseAverage(const UseAverage&) = delete;
  UseAverage& operator=(const UseAverage&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<Parameter>, Tensor>> own_;
};

}  // namespace qkv
