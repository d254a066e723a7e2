#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "train/config/option_list.h"

/// The parts of the option list. A file of each group holds its options with, before them, the
/// conditions under which they have an effect and the checks of options that contradict each other.
namespace qkv {

using Options = std::vector<Option>;

Options run_options(Config& run);
Options task_options(TaskOptions& task);
Options model_options(Config& config);
Options optimizer_options(OptimizerOptions& optimizer);
Options schedule_options(ScheduleOptions& schedule);
Options train_options(TrainOptions& train);

/// When an option has an effect, with the words that an error has for it.
struct Condition {
  std::string_view text;  ///< "model.kind \"recurrent\""
  bool (*holds)(const Config&);
};

/// An option that has an effect on some condition only.
Option only_with(const Condition& condition, Option option);
/// Attaches a check for contradictions with other options.
Option checked_by(ConflictCheck check, Option option);
/// Attaches a check of new runs alone: checkpoints by earlier versions may have such values.
Option checked_at_start_by(ConflictCheck check, Option option);

/// Names with `quote` around each, and `last` before the last: `"a", "b" or "c"`.
std::string list_of(const std::vector<std::string>& names, std::string_view quote = "\"",
                    std::string_view last = " or ");

/// The names of a table's kinds for which `suits` holds.
template <class Rows, class Suits>
std::vector<std::string> names_with(const Rows& rows, Suits suits) {
  std::vector<std::string> names;
  for (const auto& row : rows)
    if (suits(row)) names.emplace_back(row.name);
  return names;
}

struct TaskTraits;
/// The tasks with a trait: `"translate" or "language-model"`.
std::string tasks_with(bool TaskTraits::*trait);

}  // namespace qkv
