#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/run/run.h"

namespace qkv::report {

using Json = nlohmann::ordered_json;

/// The model of a run at one of its checkpoints.
struct RunCheckpoint {
  std::string note;  ///< "untrained", "best" or empty
  SavedModel model;
};

/// A run, read once for all views of it.
struct LoadedRun {
  std::filesystem::path folder;
  std::vector<Json> metrics;               ///< lines of metrics.jsonl
  std::vector<RunCheckpoint> checkpoints;  ///< by step
  std::size_t chosen = 0;                  ///< the best checkpoint, without validation the last

  const RunCheckpoint& checkpoint() const { return checkpoints[chosen]; }
  const SavedModel& model() const { return checkpoint().model; }
  const Config& config() const { return model().config; }
};

/// Runs whose configs differ in name and in seed or fold only.
using RunGroup = std::vector<LoadedRun>;

/// The runs that a page shows, each with its chosen checkpoint: that of a run's folder, of a folder
/// of runs all in the order in which they were trained. Throws UserError when there are none.
std::vector<RunGroup> load_groups(const std::filesystem::path& folder);

/// Adds the untrained model and at most `count` other checkpoints that the run kept.
void load_checkpoints(LoadedRun& run, std::size_t count);

/// At most `count` of the indices below `size`, evenly, with the last.
std::vector<std::size_t> spread(std::size_t size, std::size_t count);

}  // namespace qkv::report
