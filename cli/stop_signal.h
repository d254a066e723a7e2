#pragma once

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "core/joining_thread.h"

namespace qkv {

/// Turns SIGINT, SIGTERM, SIGHUP and SIGXCPU into a question that the training loop asks after each
/// step, so that a run stops with its checkpoint written. While no `StopQuestion` has been asked,
/// as when data are read, they end the program at once. A SIGHUP that nohup ignores stays ignored.
/// After the first signal a second SIGINT or SIGTERM ends the program at once.
///
/// The signals are blocked rather than handled: no handler, no global flag. Make it before any
/// thread is started.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal that arrived, or 0. Several threads may ask.
  int received();

 private:
  friend class StopQuestion;

  bool is_pending() const;
  /// Takes a signal that waits. One thread at a time: another would wait for the next.
  void take();
  /// Takes signals, or lets them end the program while nobody asks.
  void watch();
  void count_questions(int change);

  sigset_t signals_;
  sigset_t previous_;
  std::mutex asking_;  ///< guards what follows
  std::atomic<int> received_ = 0;
  int questions_ = 0;  ///< that were asked and are alive
  bool ended_ = false;
  std::condition_variable end_;
  JoiningThread watcher_;
};

/// The question of one training, which from its first time on is asked again and again.
class StopQuestion {
 public:
  explicit StopQuestion(StopSignal& signal) : signal_(signal) {}
  ~StopQuestion() {
    if (asked_) signal_.count_questions(-1);
  }
  StopQuestion(const StopQuestion&) = delete;
  StopQuestion& operator=(const StopQuestion&) = delete;

  /// The signal that arrived, or 0.
  int ask() {
    if (!asked_) signal_.count_questions(+1);
    asked_ = true;
    return signal_.received();
  }

 private:
  StopSignal& signal_;
  bool asked_ = false;
};

}  // namespace qkv
