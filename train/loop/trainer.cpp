#include "train/loop/trainer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "train/loop/equal_ranks.h"
#include "train/loop/updater.h"
#include "train/loop/validation.h"
#include "train/metrics/metrics.h"
#include "train/metrics/token_rate.h"
#include "train/storage/durable_file.h"

namespace qkv {
namespace {

/// Whether a run is at a step at which only a stop, or the end of a shorter run, saves it.
bool is_off_the_grid(const Training& training) {
  const bool improved = training.size(Split::valid) > 0 && training.best_step == training.step;
  return training.step % training.options().train.checkpoint_every != 0 && !improved;
}

/// The state of a training loop.
class Trainer {
 public:
  Trainer(Training& training, const RunFolder& folder, Callback& callback,
          const Communicator& ranks)
      : training_(training),
        folder_(folder),
        callback_(callback),
        ranks_(ranks),
        updater_(training, ranks) {}

  Outcome train() {
    const int signal = take_steps();
    if (!signal) return finish();
    callback_.on_message(fmt::format("stopped after step {}", training_.step));
    return {.signal = signal, .seconds = seconds()};
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Trains to the end, after which all memory that only steps need is free, and returns 0; or
  /// until a signal, which it returns.
  int take_steps() {
    MemoryPool pool;
    const MemoryPool::Use use(pool);
    introduce();
    if (writes()) callback_.on_start(training_.step, training_.last_step);
    std::optional<DetectAnomaly> detect;
    if (options_.on_divergence == OnDivergence::detect) detect.emplace();
    bool finished = is_finished(training_);
    while (!finished) {
      step();
      const bool last = training_.step == training_.last_step;
      const bool improved = (last || training_.step % options_.eval_every == 0) && evaluate();
      const int signal = std::ranges::max(all_gather(ranks_, callback_.stop_signal()));
      finished = all_gather(ranks_, is_finished(training_) ? 1 : 0).front() == 1;
      if (finished || signal || improved || training_.step % options_.checkpoint_every == 0)
        save(signal != 0);
      if (signal && !finished) return signal;
    }
    updater_.finish();
    return 0;
  }

  /// Whether this rank evaluates and writes.
  bool writes() const { return ranks_.rank() == 0; }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void introduce() {
    const StepPlan plan = updater_.plan();
    callback_.on_message(fmt::format(
        "{}: {} parameters{}, {} training examples ({} valid, {} test), {} steps of {}",
        training_.options().name, parameter_count(training_.module()), frozen(),
        training_.size(Split::train), training_.size(Split::valid), training_.size(Split::test),
        training_.last_step, options_.batch * options_.accumulate));
    for (const std::string& line : training_.data_summary()) callback_.on_message(line);
    if (ranks_.size() > 1)
      callback_.on_message(
          fmt::format("{} ranks share {} shards of each batch", ranks_.size(), plan.shards.count));
    if (plan.recomputes)
      callback_.on_message(
          fmt::format("activations are recomputed in backward, to keep to {}", options_.memory));
    if (training_.step > 0)
      callback_.on_message(fmt::format("resuming at step {}", training_.step));
  }

  /// " (80 frozen)", of those parameters; empty when all are trained.
  std::string frozen() const {
    Index count = 0;
    for (const auto& [path, parameter] : training_.parameters)
      if (parameter->frozen()) count += parameter->value().size();
    return count ? fmt::format(" ({} frozen)", count) : "";
  }

  void step() {
    latest_ = updater_.step();
    if (!latest_.message.empty()) callback_.on_message(latest_.message);
    report_.step = training_.step;
    report_.loss = latest_.loss;
    token_rate_.add(latest_.tokens, latest_.seconds);
    report_.tokens_per_second = token_rate_.tokens_per_second();
    callback_.on_step(report_);
  }

  /// Writes a checkpoint, unless training could not continue from it: finite parameters may have a
  /// loss that is not.
  void save(bool at_once) {
    if (!validates_) training_.best_step = training_.step;
    Checkpoint checkpoint = training_.checkpoint(folder_.path());
    require_equal_state(checkpoint, ranks_);
    if (const std::string path = non_finite_tensor(checkpoint); !path.empty())
      throw updater_.diverged(path + " is not finite", report_.loss);
    if (!at_once) updater_.prepare();
    updater_.trim();
    if (writes()) folder_.save(checkpoint, options_.keep, stop_);
  }

  /// True when the valid split's score, or at equal scores its loss, is the best so far.
  bool evaluate() {
    token_rate_.restart();
    updater_.trim();
    const double train_loss = take_interval_loss(training_);
    write(Split::train, {{"loss", train_loss},
                         {"learning_rate", latest_.learning_rate},
                         {"gradient_norm", latest_.gradient_norm}});
    if (!validates_) {
      callback_.on_evaluation(report_, train_loss, std::nullopt);
      return false;
    }
    return all_gather(ranks_, writes() && validate(train_loss) ? 1 : 0).front() == 1;
  }

  bool validate(double train_loss) {
    const Evaluation valid = evaluate_now(training_, Split::valid);
    updater_.require_usable("the validation loss", valid.loss);
    write(Split::valid, values_of(valid));
    report_.headline = valid.headline();
    callback_.on_evaluation(report_, train_loss, valid);
    return take_if_best(training_, valid);
  }

  static MetricValues values_of(const Evaluation& evaluation) {
    MetricValues values = {{"loss", evaluation.loss}};
    values.insert(values.end(), evaluation.metrics.begin(), evaluation.metrics.end());
    return values;
  }

  /// To metrics.jsonl, and without times to the checkpoint, so that equal runs have equal
  /// checkpoints.
  void write(Split split, const MetricValues& values) {
    training_.metrics += metrics_line(training_.step, to_string(split), values) + "\n";
    log(training_.step, split, values);
  }

  void log(std::int64_t step, Split split, MetricValues values) {
    if (!writes()) return;
    values.emplace_back("seconds", seconds());
    // A finished run that is resumed has no step to measure.
    if (report_.step) values.emplace_back("tokens_per_second", report_.tokens_per_second);
    const std::string line = metrics_line(step, to_string(split), values);
    folder_.require_held();
    if (logs_) try {
        append(folder_.metrics(), line + "\n");
      } catch (const FileError& error) {
        logs_ = false;  // no line may follow an incomplete one
        callback_.on_message(fmt::format(
            "{}; training continues without it, and `qkv resume` restores it from the checkpoint",
            error.what()));
      }
    for (const MetricsEvent& event : parse_metrics(line).events) callback_.on_metrics(event);
  }

  Outcome finish() {
    if (training_.step < training_.last_step)
      callback_.on_message(
          fmt::format("stopped early at step {}: {} evaluations without a better "
                      "checkpoint than that of step {}",
                      training_.step, options_.patience, training_.best_step));
    Outcome outcome{.seconds = seconds()};
    if (!writes()) return outcome;
    const std::int64_t best_step = load_best(training_, folder_);
    if (training_.size(Split::test) == 0) return outcome;
    outcome.test = training_.evaluate(Split::test);
    updater_.require_usable("the test loss", outcome.test->loss);
    log(best_step, Split::test, values_of(*outcome.test));
    callback_.on_message(fmt::format("test {}, loss {:.4f} (checkpoint of step {}), {:.1f} s",
                                     outcome.test->headline(), outcome.test->loss, best_step,
                                     outcome.seconds));
    return outcome;
  }

  Training& training_;
  const RunFolder& folder_;
  Callback& callback_;
  const Communicator& ranks_;
  const TrainOptions& options_ = training_.options().train;
  const bool validates_ = training_.size(Split::valid) > 0;
  /// The step at which an earlier session stopped between two checkpoints; 0: none did. An
  /// undisturbed run has no checkpoint of it.
  const std::int64_t stop_ = is_off_the_grid(training_) ? training_.step : 0;
  Updater updater_;
  bool logs_ = true;  ///< whether metrics.jsonl could be written so far
  StepResult latest_;
  StepReport report_;
  TokenRate token_rate_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

Outcome train(Training& training, const RunFolder& folder, Callback& callback,
              const Communicator& ranks) {
  return Trainer(training, folder, callback, ranks).train();
}

}  // namespace qkv
