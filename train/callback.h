#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "datasets/read_callback.h"
#include "train/tasks/task.h"

namespace qkv {

/// State of a training loop after an update.
struct StepReport {
  std::int64_t step = 0;  ///< updates done
  double loss = 0;
  std::string headline;  ///< of the latest evaluation; empty before it
  double tokens_per_second = 0;
};

/// Hooks of reading data and of a training loop, to show progress and to stop early. The defaults
/// do nothing.
class Callback : public ReadCallback {
 public:
  /// Before the first update of this program: `step` updates are done of `steps`.
  virtual void on_start([[maybe_unused]] std::int64_t step, [[maybe_unused]] std::int64_t steps) {}
  virtual void on_step([[maybe_unused]] const StepReport& report) {}
  virtual void on_evaluation([[maybe_unused]] const StepReport& report,
                             [[maybe_unused]] double train_loss,
                             [[maybe_unused]] const std::optional<Evaluation>& valid) {}
  /// The signal that asks to stop after this step, or 0.
  virtual int stop_signal() { return 0; }
};

}  // namespace qkv
