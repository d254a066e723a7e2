#include "cli/stop_signal.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>

namespace qkv {
namespace {

constexpr std::array stopping = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};

}  // namespace

StopSignal::StopSignal() {
  sigemptyset(&signals_);
  for (const int signal : stopping) sigaddset(&signals_, signal);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler == SIG_IGN) sigdelset(&signals_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals_, &previous_);
  try {
    watcher_ = JoiningThread([this] { watch(); });
  } catch (const std::system_error&) {  // no more threads: signals wait for the first step
  }
}

StopSignal::~StopSignal() {
  {
    const std::lock_guard lock(asking_);
    ended_ = true;
  }
  end_.notify_one();
  watcher_.join();
  // A terminal that closes sends SIGHUP twice, and SIGXCPU comes each second.
  for (int signal = 0; received_ && is_pending();) sigwait(&signals_, &signal);
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

int StopSignal::received() {
  if (received_) return received_;
  const std::lock_guard lock(asking_);
  take();
  return received_;
}

bool StopSignal::is_pending() const {
  sigset_t pending;
  sigpending(&pending);
  return std::ranges::any_of(stopping, [&](int signal) {
    return sigismember(&signals_, signal) == 1 && sigismember(&pending, signal) == 1;
  });
}

void StopSignal::take() {
  if (received_ || !is_pending()) return;
  int signal = 0;
  sigwait(&signals_, &signal);
  received_ = signal;
  sigset_t by_user;
  sigemptyset(&by_user);
  for (const int repeated : {SIGINT, SIGTERM}) sigaddset(&by_user, repeated);
  pthread_sigmask(SIG_UNBLOCK, &by_user, nullptr);
}

void StopSignal::watch() {
  std::unique_lock lock(asking_);
  while (!end_.wait_for(lock, std::chrono::milliseconds(50), [this] { return ended_; })) {
    if (questions_ == 0 && !received_ && is_pending()) {
      pthread_sigmask(SIG_SETMASK, &previous_, nullptr);  // here it ends the program
      pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    } else {
      take();
    }
  }
}

void StopSignal::count_questions(int change) {
  const std::lock_guard lock(asking_);
  questions_ += change;
}

}  // namespace qkv
