#include "train/session.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "train/storage/durable_file.h"

namespace qkv {
namespace {

using Json = nlohmann::ordered_json;

/// The lines of metrics.jsonl.
std::vector<Json> events_of(const RunFolder& folder) {
  std::ifstream log(folder.metrics());
  std::vector<Json> events;
  for (std::string line; std::getline(log, line);)
    if (Json event = Json::parse(line, nullptr, false); event.is_object())
      events.push_back(std::move(event));
  return events;
}

bool is_test(const Json& event) {
  return event.value("split", "") == "test";
}

/// Drops the metrics of later steps than the checkpoint's.
void rewind_metrics(const RunFolder& folder, std::int64_t step) {
  std::string kept;
  for (const Json& event : events_of(folder))
    if (event.value("step", step + 1) <= step && !is_test(event)) kept += event.dump() + "\n";
  write_durably(folder.metrics(), kept);
}

/// Of all sessions, each of which starts at 0.
double seconds_of(const std::vector<Json>& events) {
  double before = 0, last = 0;
  for (const Json& event : events) {
    const double now = event.value("seconds", last);
    if (now < last) before += last;
    last = now;
  }
  return before + last;
}

/// Writes the config, and removes a report of the run before it continues.
void prepare(const Run& run, const RunFolder& folder) {
  write_durably(folder.config(), to_toml(portable(run.config, folder.path())));
  std::error_code missing;
  if (run.step < run.config.train.steps) std::filesystem::remove(folder.report(), missing);
}

}  // namespace

Outcome start(Run& run, const RunFolder& folder, Callback& callback) {
  folder.create();
  prepare(run, folder);
  return train(run, folder, callback);
}

Outcome resume(Run& run, const RunFolder& folder, Callback& callback) {
  rewind_metrics(folder, run.step);
  prepare(run, folder);
  Outcome outcome = train(run, folder, callback);
  outcome.seconds = seconds_of(events_of(folder));
  return outcome;
}

std::optional<Outcome> finished(Run& run, const RunFolder& folder) {
  if (run.step < run.config.train.steps) return {};
  const auto events = events_of(folder);
  Outcome outcome{.seconds = seconds_of(events)};
  const bool has_test = run.task->size(Split::test) > 0;
  if (has_test && (events.empty() || !is_test(events.back()))) return {};
  load_best(run, folder);
  if (has_test) outcome.test = run.task->evaluate(*run.network, Split::test);
  return outcome;
}

std::pair<Checkpoint, std::filesystem::path> newest_valid_checkpoint(const RunFolder& folder,
                                                                     Callback& callback) {
  require_run(folder);
  auto files = folder.checkpoints();
  for (const auto& file : {folder.last(), folder.best()})
    if (std::filesystem::exists(file)) files.push_back(file);
  for (const auto& file : files) try {
      return {read_checkpoint(file), file};
    } catch (const Error& error) {
      callback.on_message(fmt::format("{}; falling back to the previous checkpoint", error.what()));
    }
  throw FileError(fmt::format("{} holds no valid checkpoint; remove it and start again",
                              folder.path().string()));
}

}  // namespace qkv
