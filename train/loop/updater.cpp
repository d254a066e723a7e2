#include "train/loop/updater.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "optim/clip.h"
#include "optim/schedule.h"

namespace qkv {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Updater::Updater(Training& training, const Communicator& ranks) : training_(training) {
  stepper_.emplace(training, ranks);
}

Updater::Update Updater::compute() {
  const auto start = Clock::now();
  StepGradients now = stepper_->gradients();
  if (!first_loss_) first_loss_ = now.loss;
  clip_value(now.gradients, training_.options().train.clip_value);
  const double norm = clip_norm(now.gradients, training_.options().train.clip);
  return {std::move(now), norm, seconds_since(start)};
}

StepResult Updater::step() {
  Update now = next_ ? *std::exchange(next_, std::nullopt) : compute();
  const auto start = Clock::now();
  const std::string fault = fault_of(now);
  StepResult result{.gradient_norm = now.norm,
                    .learning_rate = rate_of(training_.step),
                    .tokens = now.gradients.tokens};
  result.message = fault.empty() ? apply(now) : leave_out(fault, now.gradients.loss);
  result.loss = loss_;
  ++training_.step;
  result.seconds = now.seconds + seconds_since(start);
  return result;
}

void Updater::prepare() {
  next_ = compute();
  if (training_.options().train.on_divergence == OnDivergence::skip) return;
  if (const std::string fault = fault_of(*next_); !fault.empty())
    throw diverged(fault, next_->gradients.loss);
}

void Updater::finish() {
  next_.reset();
  stepper_.reset();
}

/// Returns a message where the gradient norm is unusual.
std::string Updater::apply(const Update& update) {
  const StepGradients& now = update.gradients;
  training_.optimizer->step(training_.parameters, now.gradients, rate_of(training_.step),
                            training_.updates);
  ++training_.updates;
  if (training_.average) training_.average->update(training_.parameters);
  training_.interval_loss += now.loss;
  ++training_.interval_steps;
  loss_ = now.loss;
  const auto ratio = spikes_.add(update.norm);
  return ratio ? fmt::format("step {}: the gradient norm {:.4g} is {:.0f} times its mean",
                             training_.step, update.norm, *ratio)
               : "";
}

/// Returns a message. Throws Error unless such updates are left out.
std::string Updater::leave_out(const std::string& fault, double loss) {
  if (training_.options().train.on_divergence != OnDivergence::skip) throw diverged(fault, loss);
  ++left_out_;
  return fmt::format("step {}: {}; update left out, {} so far", training_.step, fault, left_out_);
}

double Updater::rate_of(std::int64_t step) const {
  return learning_rate(training_.options().schedule, training_.options().optimizer.lr, step,
                       training_.last_step);
}

/// Describes the fault of a loss, a mean over targets; empty where training can go on. A loss
/// of 1e9 and a thousand times the first has exploded: before it is no longer finite, checkpoints
/// would be saved from which no lower learning rate leads back.
std::string Updater::fault_of(std::string_view what, double loss) const {
  constexpr double exploded = 1e9, growth = 1000;
  if (std::abs(loss) < std::max(exploded, growth * std::abs(first_loss_.value_or(0)))) return "";
  return fmt::format("{} {}", what, std::isfinite(loss) ? "has exploded" : "is not finite");
}

std::string Updater::fault_of(const Update& update) const {
  if (std::isfinite(update.norm)) return fault_of("the loss", update.gradients.loss);
  const Gradients& gradients = update.gradients.gradients;
  const auto wrong = std::ranges::find_if(training_.parameters, [&](const NamedParameter& named) {
    return gradients.has(*named.parameter) &&
           !std::isfinite(sum(gradients.of(*named.parameter)).item());
  });
  return fmt::format("the gradient of {} is not finite",
                     wrong == training_.parameters.end() ? "a parameter" : wrong->path);
}

void Updater::require_usable(std::string_view what, double loss) const {
  if (const std::string fault = fault_of(what, loss); !fault.empty()) throw diverged(fault, loss);
}

Error Updater::diverged(const std::string& fault, double loss) const {
  const double rate = rate_of(std::max<std::int64_t>(training_.step - 1, 0));
  return Error(fmt::format(
      "step {}: {} (loss {:g}, learning rate {:g}); lower optimizer.lr or "
      "train.clip and resume from the last checkpoint, or find the op that caused it with "
      "train.on_divergence=detect",
      training_.step, fault, loss, rate));
}

}  // namespace qkv
