#include "train/run/check_checkpoint.h"

#include <cmath>
#include <limits>

#include "train/metrics/metrics.h"

namespace qkv {
namespace {

void check_progress(const Checkpoint& checkpoint, const std::string& file) {
  const auto& progress = checkpoint.progress;
  for (const std::string name :
       {"interval_loss", "interval_steps", "best_score", "best_loss", "best_step"})
    require<CheckpointError>(progress.contains(name), "{}: /progress/{} is missing", file, name);
  // An imported model has not begun to train.
  for (const std::string name : {"updates", "permuted_examples"})
    require<CheckpointError>(checkpoint.step == 0 || progress.contains(name),
                             "{}: /progress/{} is missing", file, name);
  for (const std::string name : {"interval_steps", "updates", "best_step"}) {
    const auto found = progress.find(name);
    if (found == progress.end()) continue;
    const double steps = found->second;
    require<CheckpointError>(
        steps >= 0 && steps <= static_cast<double>(checkpoint.step) && std::floor(steps) == steps,
        "{}: /progress/{} must be an integer from 0 to the step {}, got {}", file, name,
        checkpoint.step, steps);
  }
  for (const std::string name : {"interval_loss", "best_score"})
    require<CheckpointError>(std::isfinite(progress.at(name)),
                             "{}: /progress/{} must be finite, got {}", file, name,
                             progress.at(name));
}

}  // namespace

void check_checkpoint(const Checkpoint& checkpoint, const TrainerOptions& options,
                      const std::filesystem::path& path) {
  const std::string file = path.string();
  const std::int64_t most =
      std::numeric_limits<std::int64_t>::max() / (options.train.batch * options.train.accumulate) -
      1;
  require<CheckpointError>(checkpoint.step <= most,
                           "{}: step {} is more than {}, the most for batches of {} x {}", file,
                           checkpoint.step, most, options.train.batch, options.train.accumulate);
  check_progress(checkpoint, file);
  const auto malformed = parse_metrics(checkpoint.metrics).malformed;
  require<CheckpointError>(malformed.empty(),
                           "{}: line {} of /progress/metrics must be an evaluation in JSON", file,
                           malformed.empty() ? 0 : malformed.front());
  const std::string tensor = non_finite_tensor(checkpoint);
  require<CheckpointError>(tensor.empty(), "{}: {} holds a value that is not finite", file, tensor);
}

}  // namespace qkv
