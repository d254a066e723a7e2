#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "datasets/read_callback.h"
#include "train/metrics/metrics.h"
#include "train/tasks/evaluation.h"

namespace qkv {

/// State of a training loop after an update.
struct StepReport {
  std::int64_t step = 0;  ///< updates done
  double loss = 0;
  std::string headline;  ///< of the latest evaluation; empty before it
  double tokens_per_second = 0;
};

/// Hooks of reading data and of a training loop, to show progress, to log and to stop early. The
/// defaults do nothing. Of several ranks, only the one that writes calls `on_start` and
/// `on_metrics`.
class Callback : public ReadCallback {
 public:
  /// Before the first update of this program: `step` updates are done of `steps`.
  virtual void on_start([[maybe_unused]] std::int64_t step, [[maybe_unused]] std::int64_t steps) {}
  virtual void on_step([[maybe_unused]] const StepReport& report) {}
  virtual void on_evaluation([[maybe_unused]] const StepReport& report,
                             [[maybe_unused]] double train_loss,
                             [[maybe_unused]] const std::optional<Evaluation>& valid) {}
  /// A line of metrics.jsonl, also where the file could not be written.
  virtual void on_metrics([[maybe_unused]] const MetricsEvent& event) {}
  /// The signal that asks to stop after this step, or 0.
  virtual int stop_signal() { return 0; }
};

}  // namespace qkv
