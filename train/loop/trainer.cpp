#include "train/loop/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "optim/clip.h"
#include "optim/schedule.h"
#include "train/loop/equal_ranks.h"
#include "train/loop/step.h"
#include "train/metrics/metrics.h"
#include "train/metrics/spike_detector.h"
#include "train/metrics/token_rate.h"
#include "train/storage/durable_file.h"

namespace qkv {
namespace {

/// Whether a run is at a step at which only a stop, or the end of a shorter run, saves it.
bool is_off_the_grid(const Run& run) {
  const bool improved = run.task->size(Split::valid) > 0 && run.best_step == run.step;
  return run.step % run.config.train.checkpoint_every != 0 && !improved;
}

/// The state of a training loop.
class Trainer {
 public:
  Trainer(Run& run, const RunFolder& folder, Callback& callback, const Communicator& ranks)
      : run_(run), folder_(folder), callback_(callback), ranks_(ranks) {}

  Outcome train() {
    const int signal = take_steps();
    if (!signal) return finish();
    callback_.on_message(fmt::format("stopped after step {}", run_.step));
    return {.signal = signal, .seconds = seconds()};
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Trains to the end, after which all memory that only steps need is free, and returns 0; or
  /// until a signal, which it returns.
  int take_steps() {
    MemoryPool pool;
    const MemoryPool::Use use(pool);
    stepper_.emplace(run_, ranks_);
    introduce();
    if (writes()) callback_.on_start(run_.step, run_.last_step);
    std::optional<DetectAnomaly> detect;
    if (options_.on_divergence == OnDivergence::detect) detect.emplace();
    bool finished = is_finished(run_);
    while (!finished) {
      step();
      const bool last = run_.step == run_.last_step;
      const bool improved = (last || run_.step % options_.eval_every == 0) && evaluate();
      const int signal = std::ranges::max(all_gather(ranks_, callback_.stop_signal()));
      finished = all_gather(ranks_, is_finished(run_) ? 1 : 0).front() == 1;
      if (finished || signal || improved || run_.step % options_.checkpoint_every == 0)
        save(signal != 0);
      if (signal && !finished) return signal;
    }
    next_.reset();
    stepper_.reset();
    return 0;
  }

  /// Whether this rank evaluates and writes.
  bool writes() const { return ranks_.rank() == 0; }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void introduce() {
    callback_.on_message(fmt::format(
        "{}: {} parameters{}, {} training examples ({} valid, {} test), {} steps of {}",
        run_.config.name, parameter_count(*run_.network), frozen(), run_.task->size(Split::train),
        run_.task->size(Split::valid), run_.task->size(Split::test), run_.last_step,
        options_.batch * options_.accumulate));
    if (const std::string labels = run_.task->label_summary(); !labels.empty())
      callback_.on_message(labels);
    if (!validates_)
      callback_.on_message(
          "no validation data: the best checkpoint is the last; name a file with task.valid, or "
          "let task.valid_share take a fraction of task.data");
    if (ranks_.size() > 1)
      callback_.on_message(fmt::format("{} ranks share {} shards of each batch", ranks_.size(),
                                       stepper_->plan().shards.count));
    if (stepper_->plan().recomputes)
      callback_.on_message(
          fmt::format("activations are recomputed in backward, to keep to {}", options_.memory));
    if (run_.step > 0) callback_.on_message(fmt::format("resuming at step {}", run_.step));
  }

  /// " (80 frozen)", of those parameters; empty when all are trained.
  std::string frozen() const {
    Index count = 0;
    for (const auto& [path, parameter] : run_.parameters)
      if (parameter->frozen()) count += parameter->value().size();
    return count ? fmt::format(" ({} frozen)", count) : "";
  }

  /// The gradients of an update, clipped.
  struct Update {
    StepGradients gradients;
    double norm;  ///< before clipping
    double seconds;
  };

  Update compute() {
    const double start = seconds();
    StepGradients now = stepper_->gradients();
    if (!first_loss_) first_loss_ = now.loss;
    clip_value(now.gradients, options_.clip_value);
    const double norm = clip_norm(now.gradients, options_.clip);
    return {std::move(now), norm, seconds() - start};
  }

  void step() {
    Update now = next_ ? *std::exchange(next_, std::nullopt) : compute();
    const double start = seconds();
    gradient_norm_ = now.norm;
    rate_ =
        learning_rate(run_.config.schedule, run_.config.optimizer.lr, run_.step, run_.last_step);
    if (const std::string fault = fault_of(now); fault.empty())
      apply(now);
    else
      leave_out(fault, now.gradients.loss);
    ++run_.step;
    report_.step = run_.step;
    token_rate_.add(now.gradients.tokens, now.seconds + seconds() - start);
    report_.tokens_per_second = token_rate_.tokens_per_second();
    callback_.on_step(report_);
  }

  void apply(Update& update) {
    StepGradients& now = update.gradients;
    if (const auto ratio = spikes_.add(update.norm))
      callback_.on_message(fmt::format("step {}: the gradient norm {:.4g} is {:.0f} times its mean",
                                       run_.step, update.norm, *ratio));
    run_.optimizer->step(run_.parameters, now.gradients, rate_, run_.updates);
    ++run_.updates;
    if (run_.average) run_.average->update(run_.parameters);
    run_.interval_loss += now.loss;
    ++run_.interval_steps;
    report_.loss = now.loss;
  }

  void leave_out(const std::string& fault, double loss) {
    if (options_.on_divergence != OnDivergence::skip) throw diverged(fault, loss);
    ++left_out_;
    callback_.on_message(
        fmt::format("step {}: {}; update left out, {} so far", run_.step, fault, left_out_));
  }

  /// Describes the fault of a loss, a mean over targets; empty where training can go on. A loss
  /// of 1e9 and a thousand times the first has exploded: before it is no longer finite, checkpoints
  /// would be saved from which no lower learning rate leads back.
  std::string fault_of(std::string_view what, double loss) const {
    constexpr double exploded = 1e9, growth = 1000;
    if (std::abs(loss) < std::max(exploded, growth * std::abs(first_loss_.value_or(0)))) return "";
    return fmt::format("{} {}", what, std::isfinite(loss) ? "has exploded" : "is not finite");
  }

  std::string fault_of(const Update& update) const {
    if (std::isfinite(update.norm)) return fault_of("the loss", update.gradients.loss);
    const Gradients& gradients = update.gradients.gradients;
    const auto wrong = std::ranges::find_if(run_.parameters, [&](const NamedParameter& named) {
      return gradients.has(*named.parameter) &&
             !std::isfinite(sum(gradients.of(*named.parameter)).item());
    });
    return fmt::format("the gradient of {} is not finite",
                       wrong == run_.parameters.end() ? "a parameter" : wrong->path);
  }

  Error diverged(const std::string& fault, double loss) const {
    const std::int64_t latest = std::max<std::int64_t>(run_.step - 1, 0);
    const double rate =
        learning_rate(run_.config.schedule, run_.config.optimizer.lr, latest, run_.last_step);
    return Error(fmt::format(
        "step {}: {} (loss {:g}, learning rate {:g}); lower optimizer.lr or "
        "train.clip and resume from the last checkpoint, or find the op that caused it with "
        "train.on_divergence=detect",
        run_.step, fault, loss, rate));
  }

  void require_usable(const std::string& fault, double loss) const {
    if (!fault.empty()) throw diverged(fault, loss);
  }

  /// Writes a checkpoint, unless training could not continue from it: finite parameters may have a
  /// loss that is not.
  void save(bool at_once) {
    if (!validates_) run_.best_step = run_.step;
    Checkpoint checkpoint = checkpoint_of(run_, folder_.path());
    require_equal_state(checkpoint, ranks_);
    if (const std::string path = non_finite_tensor(checkpoint); !path.empty())
      throw diverged(path + " is not finite", report_.loss);
    if (!at_once) {
      next_ = compute();
      if (options_.on_divergence != OnDivergence::skip)
        require_usable(fault_of(*next_), next_->gradients.loss);
    }
    stepper_->trim();
    if (writes()) folder_.save(checkpoint, options_.keep, stop_);
  }

  /// True when the valid split's score, or at equal scores its loss, is the best so far.
  bool evaluate() {
    token_rate_.restart();
    stepper_->trim();
    require<Error>(run_.interval_steps > 0,
                   "step {}: every update since the last evaluation was left out, as none was "
                   "finite; lower optimizer.lr and resume from the last checkpoint",
                   run_.step);
    const auto steps = static_cast<double>(std::exchange(run_.interval_steps, 0));
    const double train_loss = std::exchange(run_.interval_loss, 0) / steps;
    write(Split::train,
          {{"loss", train_loss}, {"learning_rate", rate_}, {"gradient_norm", gradient_norm_}});
    if (!validates_) {
      callback_.on_evaluation(report_, train_loss, std::nullopt);
      return false;
    }
    return all_gather(ranks_, writes() && validate(train_loss) ? 1 : 0).front() == 1;
  }

  bool validate(double train_loss) {
    const Evaluation valid = evaluated();
    require_usable(fault_of("the validation loss", valid.loss), valid.loss);
    write(Split::valid, values_of(valid));
    report_.headline = valid.headline();
    callback_.on_evaluation(report_, train_loss, valid);
    const double score = valid.score_by(options_.select);
    const bool better =
        score > run_.best_score || (score == run_.best_score && valid.loss < run_.best_loss);
    if (!better) return false;
    run_.best_score = score;
    run_.best_loss = valid.loss;
    run_.best_step = run_.step;
    return true;
  }

  Evaluation evaluated() const {
    std::optional<UseAverage> averaged;
    if (run_.average) averaged.emplace(run_.parameters, *run_.average);
    return run_.task->evaluate(*run_.network, Split::valid);
  }

  static MetricValues values_of(const Evaluation& evaluation) {
    MetricValues values = {{"loss", evaluation.loss}};
    values.insert(values.end(), evaluation.metrics.begin(), evaluation.metrics.end());
    return values;
  }

  /// To metrics.jsonl, and without times to the checkpoint, so that equal runs have equal
  /// checkpoints.
  void write(Split split, const MetricValues& values) {
    run_.metrics += metrics_line(run_.step, to_string(split), values) + "\n";
    log(run_.step, split, values);
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
    if (run_.step < run_.last_step)
      callback_.on_message(
          fmt::format("stopped early at step {}: {} evaluations without a better "
                      "checkpoint than that of step {}",
                      run_.step, options_.patience, run_.best_step));
    Outcome outcome{.seconds = seconds()};
    if (!writes()) return outcome;
    const std::int64_t best_step = load_best(run_, folder_);
    if (run_.task->size(Split::test) == 0) return outcome;
    outcome.test = run_.task->evaluate(*run_.network, Split::test);
    require_usable(fault_of("the test loss", outcome.test->loss), outcome.test->loss);
    log(best_step, Split::test, values_of(*outcome.test));
    callback_.on_message(fmt::format("test {}, loss {:.4f} (checkpoint of step {}), {:.1f} s",
                                     outcome.test->headline(), outcome.test->loss, best_step,
                                     outcome.seconds));
    return outcome;
  }

  Run& run_;
  const RunFolder& folder_;
  Callback& callback_;
  const Communicator& ranks_;
  const TrainOptions& options_ = run_.config.train;
  const bool validates_ = run_.task->size(Split::valid) > 0;
  /// The step at which an earlier session stopped between two checkpoints; 0: none did. An
  /// undisturbed run has no checkpoint of it.
  const std::int64_t stop_ = is_off_the_grid(run_) ? run_.step : 0;
  std::optional<Stepper> stepper_;  ///< while steps are taken
  bool logs_ = true;                ///< whether metrics.jsonl could be written so far
  std::optional<Update> next_;      ///< of the next step, computed before a checkpoint was written
  std::optional<double> first_loss_;  ///< of this session
  SpikeDetector spikes_;
  std::int64_t left_out_ = 0;  ///< updates
  StepReport report_;
  double rate_ = 0, gradient_norm_ = 0;  ///< of the latest step, the norm before clipping
  TokenRate token_rate_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

Outcome train(Run& run, const RunFolder& folder, Callback& callback, const Communicator& ranks) {
  return Trainer(run, folder, callback, ranks).train();
}

}  // namespace qkv
