#pragma once

#include <chrono>
#include <mutex>
#include <set>
#include <string>

#include "cli/stop_signal.h"
#include "train/loop/callback.h"

namespace qkv {

/// A bar with a text beside it on stderr, where that is a terminal.
class Bar {
 public:
  using Clock = std::chrono::steady_clock;

  /// `delay`: how long work takes before there is a bar.
  explicit Bar(std::chrono::milliseconds delay = {});
  ~Bar() { erase(); }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

  bool on_terminal() const { return terminal_; }
  /// Whether it is to be drawn again, as a few times a second.
  bool due() const;
  void draw(double fraction, const std::string& text);
  /// Draws how much of some data is read, where it is due.
  void draw_reading(std::string_view what, double fraction);
  /// Makes place for a line.
  void erase();

 private:
  bool terminal_, drawn_ = false;
  Clock::time_point next_;
};

/// The lines that runs beside each other print before they train, about files that they share.
class SharedLines {
 public:
  /// Whether none of the runs has printed the line.
  bool is_new(const std::string& line);

 private:
  std::mutex mutex_;
  std::set<std::string> lines_;
};

/// Shows a training run on stderr: on a terminal a bar with loss, metric, speed and time left,
/// elsewhere plain lines. A run that trains beside others has plain lines alone, which begin with
/// its name, and none of those that another run has printed about its data. A signal stops the run.
class Progress : public Callback {
 public:
  explicit Progress(const StopSignal& stop) : stop_(stop) {}
  /// A run of that name beside others. `shared` must outlive it.
  Progress(const StopSignal& stop, std::string name, SharedLines& shared)
      : stop_(stop), name_(std::move(name)), shared_(&shared) {}

  void on_reading(std::string_view what, double fraction) override;
  void on_start(std::int64_t step, std::int64_t steps) override;
  void on_message(const std::string& line) override;
  /// Redraws the bar a few times a second, and once estimates how long the run will take.
  void on_step(const StepReport& report) override;
  void on_evaluation(const StepReport& report, double train_loss,
                     const std::optional<Evaluation>& valid) override;
  int stop_signal() override { return stop_.ask(); }

 private:
  using Clock = std::chrono::steady_clock;

  double seconds() const;
  double seconds_left(std::int64_t step) const;

  StopQuestion stop_;
  std::string name_;
  SharedLines* shared_ = nullptr;
  std::int64_t first_step_ = 0, steps_ = 0;
  Clock::time_point start_ = Clock::now();
  Bar bar_;
};

/// Prints nothing; a signal stops the run all the same.
class SilentProgress : public Callback {
 public:
  explicit SilentProgress(const StopSignal& stop) : stop_(stop) {}

  int stop_signal() override { return stop_.ask(); }

 private:
  StopQuestion stop_;
};

}  // namespace qkv
