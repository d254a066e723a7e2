#include "train/loop/session.h"

#include <algorithm>
#include <limits>
#include <map>

#include "train/loop/equal_ranks.h"
#include "train/metrics/metrics.h"
#include "train/storage/durable_file.h"

namespace qkv {
namespace {

/// Makes metrics.jsonl hold the evaluations that the checkpoint knows. The times come from its
/// lines, where they are there.
void rewind_metrics(const RunFolder& folder, const Training& training) {
  std::map<std::pair<std::int64_t, std::string>, MetricsEvent> logged;
  for (MetricsEvent& event : read_metrics(folder.metrics()).events)
    logged[{event.step, event.split}] = std::move(event);
  std::string kept;
  for (const MetricsEvent& event : parse_metrics(training.metrics).events) {
    const auto found = logged.find({event.step, event.split});
    const bool same = found != logged.end() && found->second.loss == event.loss;
    kept += (same ? found->second.json : event.json) + "\n";
  }
  write_durably(folder.metrics(), kept);
}

/// Seconds of all sessions, each of which starts at 0.
double seconds_of(const std::vector<MetricsEvent>& events) {
  double before = 0, last = 0;
  for (const MetricsEvent& event : events) {
    const double now = event.seconds.value_or(last);
    if (now < last) before += last;
    last = now;
  }
  return before + last;
}

/// Creates the folder of a new training.
void create_run_folder(const RunFolder& folder) {
  folder.create();
  const std::string name = folder.path().string();
  require<UserError>(!folder.holds_checkpoints(),
                     "{} already holds a run; continue it with `qkv resume {}`, remove the folder, "
                     "or choose another with --run",
                     name, name);
  folder.clear();  // of a run that ended before its first checkpoint
  folder.remove_leftovers();
}

/// Writes the config, and removes a report of the run before it continues.
void prepare(const Training& training, const RunFolder& folder) {
  write_durably(folder.config(), training.config_text(folder.path()));
  std::error_code missing;
  if (!is_finished(training)) std::filesystem::remove(folder.report(), missing);
}

/// Finishes a save that was interrupted.
void repair(Training& training, const RunFolder& folder, Callback& callback) {
  folder.create();
  folder.remove_leftovers();
  folder.restore_step(training.step);
  if (training.best_step > 0 && !folder.restore_step(training.best_step)) {
    callback.on_message(
        fmt::format("the best checkpoint, of step {}, is lost; that of step {} takes its place "
                    "until the next evaluation",
                    training.best_step, training.step));
    training.best_step = training.step;
    training.best_score = std::numeric_limits<double>::lowest();
    training.best_loss = 0;
  }
  folder.settle(training.step, training.best_step, training.options().train.keep);
}

}  // namespace

Outcome start(Training& training, const RunFolder& folder, Callback& callback,
              const Communicator& ranks) {
  require_equal_ranks(training, ranks);
  if (ranks.rank() == 0) {
    create_run_folder(folder);
    prepare(training, folder);
  }
  return train(training, folder, callback, ranks);
}

void start_from(Checkpoint checkpoint, const Config& config, const RunFolder& folder) {
  create_run_folder(folder);
  checkpoint.config = to_toml(portable(config, folder.path()));
  write_durably(folder.config(), checkpoint.config);
  folder.save(checkpoint, 1);
}

Outcome resume(Training& training, const RunFolder& folder, Callback& callback,
               const Communicator& ranks) {
  require_equal_ranks(training, ranks);
  if (ranks.rank() > 0) return train(training, folder, callback, ranks);
  repair(training, folder, callback);
  rewind_metrics(folder, training);
  prepare(training, folder);
  Outcome outcome = train(training, folder, callback, ranks);
  outcome.seconds = seconds_of(read_metrics(folder.metrics()).events);
  return outcome;
}

std::optional<Outcome> finished(Training& training, const RunFolder& folder, Callback& callback) {
  if (!is_finished(training)) return {};
  repair(training, folder, callback);
  const auto events = read_metrics(folder.metrics()).events;
  Outcome outcome{.seconds = seconds_of(events)};
  const bool has_test = training.size(Split::test) > 0;
  const bool tested = !events.empty() && events.back().step == training.best_step &&
                      events.back().split == to_string(Split::test);
  if (has_test && !tested) return {};
  load_best(training, folder);
  if (has_test) outcome.test = training.evaluate(Split::test);
  return outcome;
}

std::pair<Checkpoint, std::filesystem::path> newest_valid_checkpoint(const RunFolder& folder,
                                                                     Callback& callback) {
  require_run(folder);
  std::optional<std::pair<Checkpoint, std::filesystem::path>> newest;
  const auto consider = [&](const std::filesystem::path& file) {
    try {
      Checkpoint checkpoint = read_valid_checkpoint(file);
      if (!newest || checkpoint.step > newest->first.step) newest = {std::move(checkpoint), file};
      return true;
    } catch (const Error& error) {
      callback.on_message(fmt::format("{}; falling back to the previous checkpoint", error.what()));
      return false;
    }
  };
  const auto files = folder.checkpoints();
  for (const auto& file : files)
    if (consider(file)) break;
  // These are files of their own where there are no hard links, or their step file was removed.
  for (const auto& name : folder.names())
    if (std::ranges::none_of(files, [&](const std::filesystem::path& file) {
          std::error_code unknown;
          return std::filesystem::equivalent(file, name, unknown);
        }))
      consider(name);
  require<FileError>(newest.has_value(), "{} holds no valid checkpoint; remove it and start again",
                     folder.path().string());
  return std::move(*newest);
}

}  // namespace qkv
