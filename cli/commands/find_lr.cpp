#include "cli/commands/training.h"
#include "train/loop/equal_ranks.h"
#include "train/loop/lr_finder.h"

namespace qkv::commands {
namespace {

struct FindLrOptions {
  std::string config;
  std::vector<std::string> set;
  RateRange range;
};

/// A config's training beside what is suggested for its data.
struct Lengths {
  Index examples;
  double lr;
  TrainingLength present, suggested;

  explicit Lengths(const Run& run)
      : examples(run.task->size(Split::train)),
        lr(run.config.optimizer.lr),
        present{run.config.train.batch * run.config.train.accumulate, run.last_step},
        suggested(length_for(examples)) {}

  /// Steps of an epoch, the last of which may be begun.
  Index epoch_steps(const TrainingLength& length) const {
    return (examples + length.batch - 1) / length.batch;
  }
};

std::string rate_text(double lr) {
  return fmt::format("{:.2g}", lr);
}

std::optional<double> suggested_rate(const RangeCurve& curve) {
  const auto at = curve.suggestion();
  if (!at) return std::nullopt;
  return curve.points()[*at].lr;
}

Json to_json(const RangeCurve& curve, const Lengths& lengths) {
  const auto lr = suggested_rate(curve);
  Json points = Json::array();
  for (const RangeCurve::Point& point : curve.points())
    points.push_back(
        object({{"lr", point.lr}, {"loss", point.loss}, {"smoothed", point.smoothed}}));
  return object({{"suggestion", lr ? Json(*lr) : Json()},
                 {"examples", lengths.examples},
                 {"batch", lengths.suggested.batch},
                 {"epoch_steps", lengths.epoch_steps(lengths.suggested)},
                 {"steps", lengths.suggested.steps},
                 {"points", points}});
}

Picture picture_of(const RangeCurve& curve) {
  const auto lr = suggested_rate(curve);
  Curve drawn = {.x = {},
                 .points = {},
                 .line = {},
                 .mark = curve.suggestion(),
                 .axis = "learning rate",
                 .points_name = "loss",
                 .line_name = "smoothed loss",
                 .mark_name = lr ? "suggestion " + rate_text(*lr) : ""};
  for (const RangeCurve::Point& point : curve.points()) {
    drawn.x.push_back(point.lr);
    drawn.points.push_back(point.loss);
    drawn.line.push_back(point.smoothed);
  }
  return {.title = "training loss at growing learning rates", .content = std::move(drawn)};
}

Cells to_table(const RangeCurve& curve, const Lengths& lengths) {
  const auto lr = suggested_rate(curve);
  const auto& [examples, config_lr, present, suggested] = lengths;
  const auto row = [](const char* title, Index now, Index better) {
    return std::vector{std::string(title), fmt::format("{}", now), fmt::format("{}", better)};
  };
  return {{"", "config", "suggestion"},
          {"learning rate", fmt::format("{:g}", config_lr), lr ? rate_text(*lr) : "-"},
          row("batch size", present.batch, suggested.batch),
          row("steps per epoch", lengths.epoch_steps(present), lengths.epoch_steps(suggested)),
          row("steps", present.steps, suggested.steps)};
}

/// The command that trains at the suggested rate, or how to find one.
std::string advice(const RangeCurve& curve, const FindLrOptions& options) {
  const auto lr = suggested_rate(curve);
  if (!lr) return "the loss does not fall: give a lower --from, a higher --to or more --steps";
  std::string command = "qkv train " + shell_word(options.config);
  for (const std::string& change : options.set) command += " --set " + shell_word(change);
  return fmt::format("train with: {} --set optimizer.lr={}", command, rate_text(*lr));
}

Document find_lr(const FindLrOptions& options, const Communicator& ranks, const StopSignal& stop) {
  const auto& [from, to, steps] = options.range;
  require<UserError>(from < to, "--from {:g} must be below --to {:g}", from, to);
  const auto progress = progress_of(ranks, stop);
  Run run = start_run(read_config(options.config, options.set).base, *progress);
  require_equal_ranks(run, ranks);
  const Lengths lengths(run);
  const RangeCurve curve = range_test(std::move(run), options.range, *progress, ranks);
  Document document;
  document.data = to_json(curve, lengths);
  if (!curve.points().empty()) document.add_picture(picture_of(curve));
  document.add_text("\n{} training examples, {} a step of the test\n", lengths.examples,
                    lengths.present.batch);
  document.add_table(to_table(curve, lengths));
  document.add_text("\n{}\n", advice(curve, options));
  return document;
}

Option rate_option(const char* name, double& rate, const char* help) {
  return {name, &rate, help, {.low = 0, .high = 1e6, .excludes_low = true}};
}

}  // namespace

Command find_lr_command() {
  const auto o = std::make_shared<FindLrOptions>();
  return {
      .name = "find-lr",
      .summary = "Suggest a learning rate for a config by a range test, and its curve",
      .options = {config_argument(o->config),
                  set_option(o->set),
                  rate_option("--from", o->range.from, "Learning rate of the first step [1e-6]"),
                  rate_option("--to", o->range.to, "Learning rate of the last step [1]"),
                  {"--steps", &o->range.steps, "Steps of the test [500]", from_to(50, 100000)},
                  threads_option()},
      .has_pictures = true,
      .run = [o](const Stream&) {
        return on_all_ranks([&](const Communicator& ranks, const StopSignal& stop) {
          return find_lr(*o, ranks, stop);
        });
      }};
}

}  // namespace qkv::commands
