#pragma once

namespace qkv {

/// Turns SIGINT, SIGTERM, SIGHUP and SIGXCPU into a question that the training loop asks after each
/// step, so that a run stops with its checkpoint written; from the constructor to the end of the
/// program. While no `StopQuestion` has been asked, as when data are read, they end the program at
/// once. After the first signal a second SIGINT or SIGTERM ends the program at once, and the others
/// do nothing more. A SIGHUP that nohup ignores stays ignored.
class StopSignal {
 public:
  StopSignal();

  /// The signal that arrived, or 0. Several threads may ask.
  int received() const;
};

/// The question of one training, which from its first time on is asked again and again.
class StopQuestion {
 public:
  explicit StopQuestion(const StopSignal& signal) : signal_(signal) {}
  ~StopQuestion();
  StopQuestion(const StopQuestion&) = delete;
  StopQuestion& operator=(const StopQuestion&) = delete;

  /// The signal that arrived, or 0.
  int ask();

 private:
  const StopSignal& signal_;
  bool asked_ = false;
};

}  // namespace qkv
