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
  LoadedModel model;
};

/// Runs whose configs differ in name and in seed or fold only.
using Variant = std::vector<std::filesystem::path>;

/// The runs that a page shows: of the folder of one run that one, of a folder of runs all, in the
/// order in which they were trained. Throws UserError when there are none.
std::vector<Variant> variants_of(const std::filesystem::path& folder);

/// At most `count` of the indices below `size`, evenly, with the last.
std::vector<std::size_t> spread(std::size_t size, std::size_t count);

/// The untrained model, the best one and at most `count` others that the run kept, by step. Throws
/// UserError when there is no valid one.
std::vector<RunCheckpoint> checkpoints_of(const std::filesystem::path& run, std::size_t count);

/// Metadata of a run: {"name", "config", "parameters", "data"}.
Json summary_of(const std::filesystem::path& run, const LoadedModel& model);

/// What came of its training: {"metrics", "test", "seconds", "best_step"}, the last null for a run
/// without validation.
Json outcome_of(const std::filesystem::path& run, const LoadedModel& model);

}  // namespace qkv::report
