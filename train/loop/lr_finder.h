#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "train/loop/callback.h"
#include "train/ranks/communicator.h"
#include "train/run/run.h"

/// The learning rate range test: Smith 2017, "Cyclical Learning Rates for Training Neural
/// Networks", 3.3.
namespace qkv {

/// Learning rates that grow geometrically.
struct RateRange {
  double from = 1e-6, to = 1;
  Index steps = 500;
};

/// The training loss at growing learning rates.
class RangeCurve {
 public:
  struct Point {
    double lr, loss;
    double smoothed;  ///< exponential mean of the losses so far, corrected for its start
  };

  explicit RangeCurve(const RateRange& range);

  /// from (to / from)^(k / (steps - 1)) with k, the number of points so far.
  double next_rate() const;
  /// Adds the loss l(k) of a step at `next_rate`. With w = max(steps / 20, 1) and beta = 1 - 1 / w
  /// the smoothed loss is
  ///
  ///     m(k) = beta m(k - 1) + (1 - beta) l(k),  s(k) = m(k) / (1 - beta^(k + 1))
  void add(double loss);

  /// Whether the smoothed loss is not finite or more than four times its minimum so far.
  bool has_diverged() const;
  /// The index of a point shortly before the end of the steepest descent; nothing where the
  /// smoothed loss does not fall. Slopes against log lr are differences, as the rates are evenly
  /// spaced in log lr. With s(n), the minimum:
  ///
  ///     d(k) = s(k + 2w) - s(k - 2w)  for k - 2w >= w and k + 2w <= n
  ///
  /// With the largest k whose d(k) <= min d / 4, the index is k - w: s(k) is late by w. The
  /// steepest slope alone often is the fall to the frequencies of labels or words, at rates from
  /// which little else is learned. A min d of less than a hundredth of the minimum is noise.
  std::optional<std::size_t> suggestion() const;
  const std::vector<Point>& points() const { return points_; }

 private:
  RateRange range_;
  std::size_t window_;            ///< w
  double mean_ = 0, weight_ = 0;  ///< m, and the sum of its weights
  std::vector<Point> points_;
  std::size_t minimum_ = 0;  ///< index of the smallest smoothed loss
};

/// Trains `run` from its present parameters, a step at each rate of the range in place of the
/// config's schedule, until the loss diverges. Writes nothing.
RangeCurve range_test(Run run, const RateRange& range, Callback& callback,
                      const Communicator& ranks = single_process);

/// The length of a training.
struct TrainingLength {
  Index batch;  ///< examples a step
  Index steps;
};
/// A length to begin with, by the number of training examples alone: as a batch the power of two
/// nearest to its square root, from 8 to 64, and the steps of ten epochs, from 300 to 5000.
TrainingLength length_for(Index examples);

}  // namespace qkv
