#include "train/trainer.h"

#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "optim/clip.h"
#include "optim/schedule.h"
#include "train/step.h"
#include "train/token_rate.h"

namespace qkv {
namespace {

using Json = nlohmann::ordered_json;

void require_finite(double loss, double norm, const Gradients& gradients, const Run& run,
                    double rate) {
  if (std::isfinite(loss) && std::isfinite(norm)) return;
  std::string where = "the loss";
  for (const auto& [path, parameter] : run.parameters) {
    if (!gradients.has(*parameter) || std::isfinite(sum(gradients.of(*parameter)).item())) continue;
    where = "the gradient of " + path;
    break;
  }
  throw Error(fmt::format(
      "step {}: {} is no longer finite (loss {}, learning rate {:g}); lower optimizer.lr or "
      "train.clip and resume from the last checkpoint, or find the op that caused it with "
      "train.detect_anomaly=true",
      run.step, where, loss, rate));
}

/// The state of a training loop.
class Trainer {
 public:
  Trainer(Run& run, const RunFolder& folder, Callback& callback)
      : run_(run),
        folder_(folder),
        options_(run.config.train),
        validates_(run.task->size(Split::valid) > 0),
        stepper_(run),
        callback_(callback),
        log_(folder.metrics(), std::ios::app) {}

  Outcome train() {
    introduce();
    callback_.on_start(run_.step, options_.steps);
    std::optional<DetectAnomaly> detect;
    if (options_.detect_anomaly) detect.emplace();
    while (run_.step < options_.steps) {
      step();
      const bool last = run_.step == options_.steps;
      const bool improved = (last || run_.step % options_.eval_every == 0) && evaluate();
      const int signal = callback_.stop_signal();
      if (last || signal || improved || run_.step % options_.checkpoint_every == 0)
        folder_.save(checkpoint_of(run_, folder_.path()), improved || !validates_, options_.keep);
      if (signal && !last) return stopped(signal);
    }
    return finish();
  }

 private:
  using Clock = std::chrono::steady_clock;

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void introduce() {
    callback_.on_message(
        fmt::format("{}: {} parameters, {} training examples ({} valid, {} test), {} steps of {}",
                    run_.config.name, parameter_count(*run_.network), run_.task->size(Split::train),
                    run_.task->size(Split::valid), run_.task->size(Split::test), options_.steps,
                    options_.batch * options_.accumulate));
    if (!validates_)
      callback_.on_message(
          "no validation data: the best checkpoint is the last; name a file with task.valid, or "
          "let task.valid_share take a fraction of task.data");
    if (run_.step > 0) callback_.on_message(fmt::format("resuming at step {}", run_.step));
  }

  void step() {
    const double start = seconds();
    StepGradients now = stepper_.gradients();
    clip_value(now.gradients, options_.clip_value);
    const double norm = clip_norm(now.gradients, options_.clip);
    const OptimizerOptions& optimizer = run_.config.optimizer;
    const double rate =
        learning_rate(run_.config.schedule, optimizer.lr, run_.step, options_.steps);
    require_finite(now.loss, norm, now.gradients, run_, rate);
    run_.optimizer->step(run_.parameters, now.gradients, rate, run_.step);
    if (run_.average) run_.average->update(run_.parameters);

    ++run_.step;
    run_.interval_loss += now.loss;
    ++run_.interval_steps;
    report_.step = run_.step;
    report_.loss = now.loss;
    rate_.add(now.tokens, seconds() - start);
    report_.tokens_per_second = rate_.tokens_per_second();
    callback_.on_step(report_);
  }

  /// True when the valid split's score, or at equal scores its loss, is the best so far.
  bool evaluate() {
    rate_.restart();
    const double train_loss = run_.interval_loss / static_cast<double>(run_.interval_steps);
    run_.interval_loss = 0;
    run_.interval_steps = 0;
    write({{"step", run_.step}, {"split", "train"}, {"loss", train_loss}});
    if (!validates_) {
      callback_.on_evaluation(report_, train_loss, std::nullopt);
      return false;
    }
    const Evaluation valid = evaluated();
    write(event(run_.step, valid, Split::valid));
    report_.headline = valid.headline();
    callback_.on_evaluation(report_, train_loss, valid);
    const bool better = valid.score > run_.best_score ||
                        (valid.score == run_.best_score && valid.loss < run_.best_loss);
    if (better) run_.best_score = valid.score, run_.best_loss = valid.loss;
    return better;
  }

  Evaluation evaluated() const {
    std::optional<UseAverage> averaged;
    if (run_.average) averaged.emplace(run_.parameters, *run_.average);
    return run_.task->evaluate(*run_.network, Split::valid);
  }

  static Json event(std::int64_t step, const Evaluation& evaluation, Split split) {
    Json line = {{"step", step}, {"split", to_string(split)}, {"loss", evaluation.loss}};
    for (const auto& [name, value] : evaluation.metrics) line[name] = value;
    return line;
  }

  /// To metrics.jsonl, and without times to the checkpoint, so that equal runs have equal
  /// checkpoints.
  void write(const Json& line) {
    run_.metrics += line.dump() + "\n";
    log(line);
  }

  void log(Json line) {
    line["seconds"] = seconds();
    // A finished run that is resumed has no step to measure.
    if (report_.step) line["tokens_per_second"] = report_.tokens_per_second;
    log_ << line.dump() << std::endl;
  }

  Outcome stopped(int signal) {
    callback_.on_message(fmt::format("stopped after step {}", run_.step));
    return {.signal = signal, .seconds = seconds()};
  }

  Outcome finish() {
    const std::int64_t best_step = load_best(run_, folder_);
    Outcome outcome{.seconds = seconds()};
    if (run_.task->size(Split::test) == 0) return outcome;
    outcome.test = run_.task->evaluate(*run_.network, Split::test);
    log(event(best_step, *outcome.test, Split::test));
    callback_.on_message(fmt::format("test {}, loss {:.4f} (checkpoint of step {}), {:.1f} s",
                                     outcome.test->headline(), outcome.test->loss, best_step,
                                     outcome.seconds));
    return outcome;
  }

  Run& run_;
  const RunFolder& folder_;
  const TrainOptions& options_;
  bool validates_;  ///< has a validation split
  Stepper stepper_;
  Callback& callback_;
  std::ofstream log_;
  StepReport report_;
  TokenRate rate_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

Outcome train(Run& run, const RunFolder& folder, Callback& callback) {
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  return Trainer(run, folder, callback).train();
}

}  // namespace qkv
