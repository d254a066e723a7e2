#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/run.h"

namespace qkv::report {

using Json = nlohmann::ordered_json;

/// The model of a run at one of its checkpoints.
struct RunCheckpoint {
  std::string note;  ///< "untrained", "best" or empty
  LoadedModel model;
};

/// The runs that a page shows: of the folder of one run that one, of a folder of runs all, in the
/// order in which they were trained. Throws UserError when there are none.
std::vector<std::filesystem::path> runs_of(const std::filesystem::path& folder);

/// The untrained model and every checkpoint that the run kept, by step. Throws UserError when there
/// is no valid one.
std::vector<RunCheckpoint> checkpoints_of(const std::filesystem::path& run);

/// Metadata and metrics of a run: {"name", "config", "parameters", "data", "metrics", "test",
/// "seconds"}.
Json summary_of(const std::filesystem::path& run, const LoadedModel& model);

}  // namespace qkv::report
