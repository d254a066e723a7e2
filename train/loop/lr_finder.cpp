#include "train/loop/lr_finder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/loop/updater.h"
#include "train/metrics/token_rate.h"

namespace qkv {

RangeCurve::RangeCurve(const RateRange& range)
    : range_(range), window_(static_cast<std::size_t>(std::max<Index>(range.steps / 20, 1))) {}

double RangeCurve::next_rate() const {
  const auto step = static_cast<double>(points_.size());
  return range_.from *
         std::pow(range_.to / range_.from, step / static_cast<double>(range_.steps - 1));
}

void RangeCurve::add(double loss) {
  const double beta = 1 - 1 / static_cast<double>(window_);
  mean_ = beta * mean_ + (1 - beta) * loss;
  weight_ = beta * weight_ + (1 - beta);
  points_.push_back({next_rate(), loss, mean_ / weight_});
  if (points_.back().smoothed < points_[minimum_].smoothed) minimum_ = points_.size() - 1;
}

bool RangeCurve::has_diverged() const {
  constexpr double growth = 4;
  return !(points_.back().smoothed <= growth * points_[minimum_].smoothed);
}

std::optional<std::size_t> RangeCurve::suggestion() const {
  constexpr double least_fraction = 0.25, noise = 0.01;
  const std::size_t span = 4 * window_;
  std::vector<double> changes;  // d(k) at index k - 3w
  for (std::size_t i = window_; i + span <= minimum_; ++i)
    changes.push_back(points_[i + span].smoothed - points_[i].smoothed);
  if (changes.empty()) return std::nullopt;
  const double steepest = std::ranges::min(changes);
  if (-steepest <= noise * points_[minimum_].smoothed) return std::nullopt;
  const auto is_steep = [=](double change) { return change <= least_fraction * steepest; };
  const auto last = std::find_if(changes.rbegin(), changes.rend(), is_steep);
  return static_cast<std::size_t>(changes.rend() - last - 1) + 2 * window_;
}

RangeCurve range_test(Run run, const RateRange& range, Callback& callback,
                      const Communicator& ranks) {
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  run.config.schedule = {};
  run.config.train.on_divergence = OnDivergence::skip;
  RangeCurve curve(range);
  Updater updater(run, ranks);
  TokenRate token_rate;
  callback.on_start(0, range.steps);
  while (run.step < range.steps) {
    run.config.optimizer.lr = curve.next_rate();
    const StepResult result = updater.step();
    if (run.updates < run.step) break;  // the update was left out
    curve.add(result.loss);
    if (curve.has_diverged()) break;
    token_rate.add(result.tokens, result.seconds);
    callback.on_step({run.step, result.loss, "", token_rate.tokens_per_second()});
  }
  return curve;
}

TrainingLength length_for(Index examples) {
  const auto power = std::lround(std::log2(static_cast<double>(examples)) / 2);
  const Index batch = std::clamp<Index>(Index{1} << power, 8, 64);
  return {batch, std::clamp<Index>(10 * examples / batch, 300, 5000)};
}

}  // namespace qkv
