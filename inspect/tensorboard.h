#pragma once

#include <string>

#include "train/loop/callback.h"
#include "train/storage/run_folder.h"

namespace qkv {

/// With train.tensorboard, writes the scalars of metrics.jsonl to an event file of TensorBoard
/// while a run trains (docs/metrics.md). All hooks go on to another callback, which gets a message
/// when the file cannot be written; training continues without it then.
class TensorBoard : public Callback {
 public:
  /// `next` must outlive it.
  TensorBoard(const Config& config, RunFolder folder, Callback& next);

  void on_message(const std::string& line) override { next_.on_message(line); }
  void on_reading(std::string_view what, double fraction) override {
    next_.on_reading(what, fraction);
  }
  /// Writes the event file anew from metrics.jsonl, so that a resumed run has no point twice.
  void on_start(std::int64_t step, std::int64_t steps) override;
  void on_step(const StepReport& report) override { next_.on_step(report); }
  void on_evaluation(const StepReport& report, double train_loss,
                     const std::optional<Evaluation>& valid) override {
    next_.on_evaluation(report, train_loss, valid);
  }
  void on_metrics(const MetricsEvent& event) override;
  int stop_signal() override { return next_.stop_signal(); }

 private:
  /// Calls `write`, unless something could not be written before.
  template <class Write>
  void attempt(Write write);

  bool writes_;
  RunFolder folder_;
  Callback& next_;
  double start_ = 0;  ///< of this session, in seconds since 1970
};

}  // namespace qkv
