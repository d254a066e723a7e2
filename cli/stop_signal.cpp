#include "cli/stop_signal.h"

#include <atomic>
#include <csignal>

namespace qkv {
namespace {

// A signal handler reaches no object. It may use atomics that need no lock.
std::atomic<int> received_signal = 0;
std::atomic<int> questions = 0;  // that were asked and are alive
static_assert(std::atomic<int>::is_always_lock_free);

void take(int signal) {
  int none = 0;
  if (questions > 0 && received_signal.compare_exchange_strong(none, signal)) return;
  // A terminal that closes sends SIGHUP twice, and SIGXCPU comes each second.
  if (received_signal != 0 && signal != SIGINT && signal != SIGTERM) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

StopSignal::StopSignal() {
  struct sigaction action = {}, previous = {};
  action.sa_handler = take;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
    sigaction(signal, nullptr, &previous);
    if (signal != SIGHUP || previous.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

int StopSignal::received() const {
  return received_signal;
}

StopQuestion::~StopQuestion() {
  if (asked_) --questions;
}

int StopQuestion::ask() {
  if (!asked_) ++questions;
  asked_ = true;
  return signal_.received();
}

}  // namespace qkv
