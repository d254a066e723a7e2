#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/kinds.h"
#include "core/shape.h"
#include "optim/options.h"

namespace qkv {

/// Response to a loss or gradient that is not finite.
enum class OnDivergence { stop, skip, detect };
inline constexpr auto divergence_policies = std::to_array<Kind<OnDivergence>>({
    {OnDivergence::stop, "stop", "error; the last finite checkpoint stays"},
    {OnDivergence::skip, "skip", "leave the update out"},
    {OnDivergence::detect, "detect",
     "error that names the first op to produce a NaN or infinity, and parameters without a "
     "gradient; slow"},
});
static_assert(lists_every_kind(divergence_policies));

/// The training loop; [train].
struct TrainOptions {
  std::string init = {};                 ///< run folder or checkpoint to start from; empty: none
  std::vector<std::string> freeze = {};  ///< parts that are not trained, see `freeze_parts`
  std::int64_t steps = 500;
  double epochs = 0;        ///< passes over the training examples, in place of steps; 0: none
  Index batch = 32;         ///< examples a micro-batch
  Index accumulate = 1;     ///< micro-batches a step
  double clip = 1.0;        ///< maximum gradient norm; 0: no clipping
  double clip_value = 0.0;  ///< maximum absolute value of its elements; 0: no clipping
  double ema = 0.0;         ///< decay of the moving average of the weights, which is evaluated and
                            ///< saved; 0: none
  std::int64_t eval_every = 50, checkpoint_every = 100;  ///< steps
  Index keep = 3;                                        ///< checkpoints kept
  Index patience = 0;       ///< evaluations without a better checkpoint that end the run; 0: none
  std::string select = {};  ///< metric that selects the best checkpoint; empty: the task's own
  OnDivergence on_divergence = OnDivergence::stop;
  std::string memory = {};   ///< budget of memory, as "4GB"; empty: none
  bool tensorboard = false;  ///< write an event file (inspect/tensorboard.h)

  friend bool operator==(const TrainOptions&, const TrainOptions&) = default;
};

/// The options of a training, whatever its module is.
struct TrainerOptions {
  std::string name = {};  ///< names the run and its folder: never empty, free of path separators
  std::uint64_t seed = 1;
  OptimizerOptions optimizer = {};
  ScheduleOptions schedule = {};
  TrainOptions train = {};

  friend bool operator==(const TrainerOptions&, const TrainerOptions&) = default;
};

}  // namespace qkv
