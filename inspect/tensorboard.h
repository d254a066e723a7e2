#pragma once

#include <string>
#include <vector>

#include "train/loop/callback.h"
#include "train/metrics/event_file.h"
#include "train/run/run.h"
#include "train/storage/run_folder.h"

namespace qkv {

/// Writes what TensorBoard shows of a run while it trains, with train.tensorboard: the scalars of
/// metrics.jsonl, the attention of some validation texts at each evaluation, and in the end word
/// vectors for the embedding projector (docs/metrics.md). All hooks go on to another callback,
/// which gets a message when a file cannot be written; training continues without them then.
class TensorBoard : public Callback {
 public:
  /// `next` must outlive it.
  TensorBoard(const Config& config, RunFolder folder, Callback& next);

  void on_message(const std::string& line) override { next_.on_message(line); }
  void on_reading(std::string_view what, double fraction) override {
    next_.on_reading(what, fraction);
  }
  /// Makes the event file hold the lines of metrics.jsonl and the images up to `step`: a resumed
  /// run has no point twice.
  void on_start(std::int64_t step, std::int64_t steps) override;
  void on_step(const StepReport& report) override { next_.on_step(report); }
  void on_evaluation(const StepReport& report, double train_loss,
                     const std::optional<Evaluation>& valid) override {
    next_.on_evaluation(report, train_loss, valid);
  }
  void on_metrics(const MetricsEvent& event) override;
  void on_validation(const LoadedModel& model, std::int64_t step) override;
  void on_trained(const LoadedModel& model) override;
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
