#include "train/config/option_list.h"

#include "train/config/option_groups.h"
#include "train/config/task_kinds.h"

namespace qkv {
namespace {

std::optional<Conflict> first_conflict(Config config, ConflictCheck Option::*check) {
  for (const Option& option : options_of(config))
    if (option.*check)
      if (auto conflict = (option.*check)(config)) return conflict;
  return std::nullopt;
}

}  // namespace

bool predicts_with_bias(const Config& config) {
  return config.task.kind != TaskKind::static_embedding ||
         config.task.objective == Objective::glove;
}

std::vector<Option> options_of(Config& config) {
  Options all;
  for (const Options& group : {run_options(config), task_options(config.task),
                               model_options(config), optimizer_options(config.optimizer),
                               schedule_options(config.schedule), train_options(config.train)})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::optional<Conflict> find_conflict(const Config& config) {
  return first_conflict(config, &Option::conflict);
}

std::optional<Conflict> find_conflict_at_start(const Config& config) {
  return first_conflict(config, &Option::conflict_at_start);
}

Option only_with(const Condition& condition, Option option) {
  option.needs = condition.text;
  option.holds = condition.holds;
  return option;
}

Option checked_by(ConflictCheck check, Option option) {
  option.conflict = check;
  return option;
}

Option checked_at_start_by(ConflictCheck check, Option option) {
  option.conflict_at_start = check;
  return option;
}

std::string list_of(const std::vector<std::string>& names, std::string_view quote,
                    std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last : ", ";
    text += fmt::format("{0}{1}{0}", quote, names[i]);
  }
  return text;
}

std::string tasks_with(bool TaskTraits::*trait) {
  return list_of(names_with(task_kinds(), [=](const TaskRow& row) { return row.traits.*trait; }));
}

}  // namespace qkv
