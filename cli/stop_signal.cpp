#include "cli/stop_signal.h"

namespace qkv {

StopSignal::StopSignal() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, &previous_);
}

StopSignal::~StopSignal() {
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

int StopSignal::received() {
  if (received_) return received_;
  // One of two threads that see a signal takes it; the other would wait for the next.
  const std::lock_guard lock(asking_);
  if (received_ || !is_pending()) return received_;
  int signal = 0;
  sigwait(&signals_, &signal);
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  return received_ = signal;
}

bool StopSignal::is_pending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1;
}

}  // namespace qkv
