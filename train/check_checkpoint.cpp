#include "train/check_checkpoint.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

namespace qkv {
namespace {

template <class... Args>
void demand_of(bool ok, const std::filesystem::path& file, fmt::format_string<const Args&...> text,
               const Args&... args) {
  if (!ok)
    throw CheckpointError(
        fmt::format("{}: {}; take another checkpoint", file.string(), fmt::format(text, args...)));
}

bool holds_finite_values(const Tensor& tensor) {
  return dispatch(tensor.dtype(), [&]<class T>() {
    for (const T value : tensor.data<T>())
      if (!std::isfinite(value)) return false;
    return true;
  });
}

void check_progress(const Checkpoint& checkpoint, const std::filesystem::path& file) {
  for (const std::string name : {"interval_loss", "interval_steps", "best_score", "best_loss"})
    demand_of(checkpoint.progress.contains(name), file, "/progress/{} is missing", name);
  const double steps = checkpoint.progress.at("interval_steps");
  demand_of(
      steps >= 0 && steps <= static_cast<double>(checkpoint.step) && std::floor(steps) == steps,
      file, "/progress/interval_steps must be an integer from 0 to the step {}, got {}",
      checkpoint.step, steps);
  for (const std::string name : {"interval_loss", "best_score"})
    demand_of(std::isfinite(checkpoint.progress.at(name)), file,
              "/progress/{} must be finite, got {}", name, checkpoint.progress.at(name));
}

void check_metrics(const std::string& metrics, const std::filesystem::path& file) {
  std::istringstream lines(metrics);
  Index number = 0;
  for (std::string line; std::getline(lines, line);)
    demand_of((++number, nlohmann::json::parse(line, nullptr, false).is_object()), file,
              "line {} of /progress/metrics must be a JSON object", number);
}

}  // namespace

void check_checkpoint(const Checkpoint& checkpoint, const Config& config,
                      const std::filesystem::path& file) {
  const std::int64_t most =
      std::numeric_limits<std::int64_t>::max() / (config.train.batch * config.train.accumulate) - 1;
  demand_of(checkpoint.step <= most, file,
            "step {} is more than {}, the most for batches of {} x {}", checkpoint.step, most,
            config.train.batch, config.train.accumulate);
  check_progress(checkpoint, file);
  check_metrics(checkpoint.metrics, file);
  for (const auto& [path, value] : checkpoint.optimizer)
    demand_of(holds_finite_values(value), file, "/optimizer/{} has a value that is not finite",
              path);
}

}  // namespace qkv
