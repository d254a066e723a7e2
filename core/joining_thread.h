#pragma once

#include <thread>
#include <utility>

namespace qkv {

/// A thread that is joined when it is destroyed or assigned to: std::jthread without its stop
/// tokens, which libc++ has since version 20 only.
class JoiningThread {
 public:
  JoiningThread() = default;
  /// Throws std::system_error when the system starts no thread.
  template <class F>
  explicit JoiningThread(F f) : thread_(std::move(f)) {}
  JoiningThread(JoiningThread&&) noexcept = default;
  JoiningThread& operator=(JoiningThread&& other) noexcept {
    join();
    thread_ = std::move(other.thread_);
    return *this;
  }
  ~JoiningThread() { join(); }

  /// Waits for its end; does nothing where none runs.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

}  // namespace qkv
