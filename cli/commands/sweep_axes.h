#pragma once

#include <vector>

#include "cli/commands/search_plots.h"
#include "inspect/documents/json.h"
#include "train/config/sweep_file.h"

namespace qkv::commands {

/// The variant, where the file has its own, and each option of its [[sweep]]s that is not the same
/// in all `candidates`, which have a "name" and "options". Options with a range have a scale,
/// others categories.
std::vector<CandidateAxis> axes_of(const SweepFile& file, const Json& candidates);

}  // namespace qkv::commands
