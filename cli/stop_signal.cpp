#include "cli/stop_signal.h"

#include <ctime>

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
  const timespec at_once{};
  const int signal = sigtimedwait(&signals_, nullptr, &at_once);
  if (signal <= 0) return 0;
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  return received_ = signal;
}

}  // namespace qkv
