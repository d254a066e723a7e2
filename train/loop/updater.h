#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "train/loop/step.h"
#include "train/metrics/spike_detector.h"

namespace qkv {

/// Measurements of one step of a training.
struct StepResult {
  double loss = 0;           ///< mean over the targets; of the latest update that was not left out
  double gradient_norm = 0;  ///< before clipping
  double learning_rate = 0;
  Index tokens = 0;  ///< that the model read, without padding
  double seconds = 0;
  std::string message = {};  ///< an unusual norm, or why the update was left out; else empty
};

/// Takes the steps of a run: gradients, clipping, learning rate, optimizer, moving average.
/// It writes no file and calls no callback, so that each training loop takes the same steps.
///
/// A gradient or loss that is not finite, or a loss above 1e9 and a thousand times the first, is a
/// divergence: Error, unless train.on_divergence leaves such updates out.
class Updater {
 public:
  /// `training` and `ranks` must outlive it.
  explicit Updater(Training& training, const Communicator& ranks = single_process);

  /// Takes step `training.step`, which must be before `training.last_step`.
  StepResult step();
  /// Computes the gradients of the next step ahead. Throws Error when they or the loss are a
  /// divergence, unless such updates are left out: training can continue from here.
  void prepare();

  /// Throws Error when a loss, called `what`, is a divergence.
  void require_usable(std::string_view what, double loss) const;
  /// The error of a divergence at the present step.
  Error diverged(const std::string& fault, double loss) const;

  /// How the next step is divided.
  StepPlan plan() { return stepper_->plan(); }
  /// Frees the memory that the next step would use again.
  void trim() { stepper_->trim(); }
  /// Frees all memory that steps need: no step follows.
  void finish();

 private:
  /// The gradients of an update, clipped.
  struct Update {
    StepGradients gradients;
    double norm;  ///< before clipping
    double seconds;
  };

  Update compute();
  std::string apply(const Update& update);
  std::string leave_out(const std::string& fault, double loss);
  std::string fault_of(std::string_view what, double loss) const;
  std::string fault_of(const Update& update) const;
  double rate_of(std::int64_t step) const;

  Training& training_;
  std::optional<Stepper> stepper_;  ///< until `finish`
  std::optional<Update> next_;      ///< of the next step, where it was computed ahead
  std::optional<double> first_loss_;
  SpikeDetector spikes_;
  std::int64_t left_out_ = 0;  ///< updates
  double loss_ = 0;            ///< of the latest update
};

}  // namespace qkv
