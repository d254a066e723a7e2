#pragma once

#include <filesystem>
#include <vector>

#include "train/run/run.h"

namespace qkv {

/// Reads all lines of a data file but blank ones (`Task::read_line`). Throws UserError naming file
/// and line.
std::vector<LabelledText> read_labelled_texts(const LoadedModel& model,
                                              const std::filesystem::path& file,
                                              ReadCallback& callback);

}  // namespace qkv
