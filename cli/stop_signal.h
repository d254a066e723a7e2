#pragma once

#include <atomic>
#include <csignal>
#include <mutex>

namespace qkv {

/// Turns SIGINT and SIGTERM into a question that the training loop asks after each step, so that a
/// run stops with its checkpoint written. The signals are blocked rather than handled: no handler,
/// no global flag. Make it before any thread is started. After the first signal a second one ends
/// the program at once.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal that arrived, or 0. Several threads may ask.
  int received();

 private:
  static bool is_pending();

  sigset_t signals_;
  sigset_t previous_;
  std::mutex asking_;
  std::atomic<int> received_ = 0;
};

}  // namespace qkv
