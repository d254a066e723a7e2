#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "train/config/config.h"
#include "train/config/option_list.h"

namespace qkv {
namespace {

/// The options that a run may change when it resumes: how long, how fast and in which memory it
/// trains, and what it writes. Others would make what is restored another model's, another
/// optimizer's or other data's.
constexpr auto resumable_options = std::to_array<std::string_view>({
    "optimizer.lr",
    "schedule.kind",
    "schedule.warmup",
    "schedule.floor",
    "train.steps",
    "train.epochs",
    "train.clip",
    "train.clip_value",
    "train.eval_every",
    "train.checkpoint_every",
    "train.patience",
    "train.keep",
    "train.on_divergence",
    "train.memory",
    "train.tensorboard",
});
/// Files that may have moved; `restore_run` compares what the data hold.
constexpr std::array<std::string_view, 4> data_files = {"task.train", "task.valid", "task.test",
                                                        "task.data"};

/// The options with other values but those for which `allowed(before, now)` holds.
template <class Allowed>
std::string differences(const Config& before, const Config& now, Allowed allowed) {
  Config old_copy = before, new_copy = now;
  const std::vector<Option> old_options = options_of(old_copy), new_options = options_of(new_copy);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < old_options.size(); ++i)
    if (old_options[i].print() != new_options[i].print() &&
        !allowed(old_options[i], new_options[i]))
      found.push_back(fmt::format("{} = {} (now {})", old_options[i].key, old_options[i].print(),
                                  new_options[i].print()));
  return fmt::format("{}", fmt::join(found, ", "));
}

}  // namespace

std::string differing_options(const Config& before, const Config& now) {
  return differences(before, now, [](const Option&, const Option&) { return false; });
}

void require_resumable(const Config& before, const Config& now, std::string_view source) {
  const std::string fixed = differences(before, now, [](const Option& was, const Option& is) {
    return std::ranges::find(resumable_options, was.key) != resumable_options.end() ||
           (std::ranges::find(data_files, was.key) != data_files.end() &&
            was.path->empty() == is.path->empty());
  });
  if (fixed.empty()) return;
  throw UserError(
      fmt::format("{}: a resume takes from the checkpoint what {} was; it may change {}, and "
                  "where the files "
                  "of {} are; start a new run to change others",
                  source, fixed, fmt::join(resumable_options, ", "), fmt::join(data_files, ", ")));
}

}  // namespace qkv
