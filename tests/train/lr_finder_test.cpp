#include "train/loop/lr_finder.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "core/parallel.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/run/run.h"

using namespace qkv;

namespace {

/// A curve of 200 rates from 1e-6 to 1 whose losses are a function of log10 of the rate.
template <class F>
RangeCurve curve_of(F loss) {
  RangeCurve curve({1e-6, 1, 200});
  for (int i = 0; i < 200; ++i) curve.add(loss(std::log10(curve.next_rate())));
  return curve;
}

/// Falls by one around `middle`, over about a decade.
double fall(double log_lr, double middle) {
  return 1 / (1 + std::exp(6 * (log_lr - middle)));
}

double suggested(const RangeCurve& curve) {
  return curve.points().at(curve.suggestion().value()).lr;
}

bool is_within_a_decade(double lr, double log_lr) {
  return std::abs(std::log10(lr) - log_lr) < 1;
}

RangeCurve tested(const Config& config, const RateRange& range) {
  Callback callback;
  return range_test(start_run(config), range, callback);
}

std::vector<double> losses_of(const RangeCurve& curve) {
  std::vector<double> losses;
  for (const RangeCurve::Point& point : curve.points()) losses.push_back(point.loss);
  return losses;
}

}  // namespace

TEST_CASE("rates of a range test grow by one factor from the first to the last") {
  RangeCurve curve({1e-4, 1e-1, 4});
  for (int i = 0; i < 4; ++i) curve.add(1);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(curve.points()[i].lr == doctest::Approx(std::pow(10, static_cast<double>(i) - 4)));
}

TEST_CASE("the smoothed loss of a range test is an exponential mean, corrected for its start") {
  RangeCurve curve({1e-4, 1, 40});  // w = 2, beta = 1/2
  for (const double loss : {3.0, 1.0, 2.0}) curve.add(loss);
  CHECK(curve.points()[0].smoothed == doctest::Approx(3));
  CHECK(curve.points()[1].smoothed == doctest::Approx((3.0 / 4 + 1.0 / 2) / (3.0 / 4)));
  CHECK(curve.points()[2].smoothed == doctest::Approx((3.0 / 8 + 1.0 / 4 + 2.0 / 2) / (7.0 / 8)));
}

TEST_CASE("a range test suggests a rate of the loss's descent") {
  for (const double middle : {-4.0, -3.0, -2.0}) {
    const auto loss = [=](double x) { return 0.1 + fall(x, middle); };
    CHECK(is_within_a_decade(suggested(curve_of(loss)), middle));
  }
}

TEST_CASE("a range test suggests a rate of the last of two descents that are about as steep") {
  const auto loss = [](double x) { return 0.1 + fall(x, -4.5) + 0.5 * fall(x, -2); };
  CHECK(is_within_a_decade(suggested(curve_of(loss)), -2));
}

TEST_CASE("a descent after the minimum or in the noise of the first steps is no suggestion") {
  const auto spike = [](double x) {
    return 0.2 + fall(x, -3) + (x > -1.5 && x < -0.8 ? 0.5 : 0.0) + (x > -0.8 ? 0.05 : 0.0);
  };
  CHECK(is_within_a_decade(suggested(curve_of(spike)), -3));
  const auto noisy_start = [](double x) { return x < -5.99 ? 2 : 0.2 + fall(x, -3); };
  CHECK(is_within_a_decade(suggested(curve_of(noisy_start)), -3));
}

TEST_CASE("a range test without a descent suggests nothing") {
  CHECK_FALSE(RangeCurve({}).suggestion());
  CHECK_FALSE(curve_of([](double) { return 0.7; }).suggestion());
  CHECK_FALSE(curve_of([](double x) { return x + 7; }).suggestion());
  CHECK_FALSE(curve_of([](double x) { return 1 + 1e-3 * std::sin(30 * x); }).suggestion());
}

TEST_CASE("a smoothed loss of more than four times its minimum, or not finite, has diverged") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [loss, diverged] :
       {std::pair{6.9, false}, {7.1, true}, {infinity, true}, {std::nan(""), true}}) {
    RangeCurve curve({1e-4, 1, 40});
    for (int i = 0; i < 20; ++i) curve.add(1);
    CHECK_FALSE(curve.has_diverged());
    curve.add(loss);  // half of the smoothed loss
    CHECK(curve.has_diverged() == diverged);
  }
}

TEST_CASE("a range test takes its own rates, whatever the config's rate and schedule") {
  const TempDir dir;
  Config config = tiny_config(TaskKind::classify, dir.write("a.tsv", labelled("yes", "no")), 4);
  const auto losses = losses_of(tested(config, {1e-4, 1e-1, 50}));
  CHECK(losses.size() == 50);
  config.optimizer.lr = 7;
  config.schedule = {ScheduleKind::cosine, 10, 0.5};
  config.train.steps = 3;
  CHECK(losses_of(tested(config, {1e-4, 1e-1, 50})) == losses);
}

TEST_CASE("a range test gives the same losses with any number of threads") {
  const TempDir dir;
  const Config config =
      tiny_config(TaskKind::classify, dir.write("a.tsv", labelled("yes", "no")), 4);
  const int before = threads();
  std::vector<std::vector<double>> losses;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    losses.push_back(losses_of(tested(config, {})));
  }
  set_threads(before);
  CHECK(losses[0] == losses[1]);
  CHECK(losses[0] == losses[2]);
}

TEST_CASE("a range test ends where the training diverges, whatever the config says of it") {
  const TempDir dir;
  const auto file = dir.write("a.tsv", labelled("yes", "no") + labelled("no", "yes"));
  Config config = tiny_config(TaskKind::classify, file, 4);
  config.optimizer.kind = OptimizerKind::sgd;
  config.train.clip = 0;
  for (const OnDivergence policy : {OnDivergence::stop, OnDivergence::skip, OnDivergence::detect}) {
    config.train.on_divergence = policy;
    const RangeCurve curve = tested(config, {1e-3, 1e6, 100});
    CHECK(curve.points().size() < 100);
    CHECK(curve.points().size() > 20);
  }
}

TEST_CASE("a length to begin with follows from the number of examples") {
  for (const auto& [examples, batch, steps] : {std::tuple<Index, Index, Index>{1, 8, 300},
                                               {300, 16, 300},
                                               {1000, 32, 312},
                                               {11656, 64, 1821},
                                               {1'000'000'000, 64, 5000}}) {
    const TrainingLength length = length_for(examples);
    CHECK(length.batch == batch);
    CHECK(length.steps == steps);
  }
}
