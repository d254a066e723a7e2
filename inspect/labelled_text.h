#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/run/run.h"

namespace qkv {

/// Reads a line of the model's kind of data, as its task does (`Task::read_line`). Throws
/// UserError.
LabelledText labelled_text(const LoadedModel& model, const std::string& line);
/// Reads all lines of a data file but blank ones. Throws UserError naming file and line.
std::vector<LabelledText> read_labelled_texts(const LoadedModel& model,
                                              const std::filesystem::path& file,
                                              ReadCallback& callback);
std::vector<LabelledText> read_labelled_texts(const LoadedModel& model,
                                              const std::filesystem::path& file);

}  // namespace qkv
