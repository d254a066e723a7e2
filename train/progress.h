#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "train/tasks/task.h"

namespace qkv {

/// Where a training loop stands.
struct StepReport {
  std::int64_t step = 0;  ///< updates done
  double loss = 0;
  std::string headline;  ///< of the latest evaluation; empty before it
  double tokens_per_second = 0;
};

/// Tokens a second of training alone, since the last evaluation. The first step of a program also
/// starts threads and takes memory from the system; it counts only until there is another.
class TokenRate {
 public:
  /// Adds a step that took `seconds`.
  void add(Index tokens, double seconds);
  /// Begins anew with the next step.
  void restart() { restarts_ = true; }
  double tokens_per_second() const;

 private:
  double tokens_ = 0, seconds_ = 0;
  bool restarts_ = false;
  std::int64_t steps_ = 0;  ///< of the program
};

/// Shows a training run on stderr: on a terminal a bar with loss, metric, speed and time left,
/// elsewhere plain lines.
class Progress {
 public:
  Progress(std::int64_t first_step, std::int64_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// A line of its own.
  void say(const std::string& line);
  /// After each step; redraws the bar a few times a second, and once says how long the run will
  /// take.
  void step(const StepReport& report);
  /// After an evaluation.
  void evaluated(const StepReport& report, double train_loss,
                 const std::optional<Evaluation>& valid);
  /// Seconds since the start.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  double seconds_left(std::int64_t step) const;
  void draw(const StepReport& report);
  void erase();

  std::int64_t first_step_, steps_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_drawn_{};
};

}  // namespace qkv
