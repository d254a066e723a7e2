#pragma once

#include <filesystem>

#include "train/run/run.h"

namespace qkv {

/// Writes what a model computes for each line of a data file to a new HDF5 file, a sentence at a
/// time:
///
///     /              attributes format = "qkv-activations", version = 1
///     /00000000      a group for each line, with attributes label, empty where there is none, and
///                    index, the word that the line is about, -1: none
///       tokens       texts [T]
///       ids          int64 [T]
///       <path>       what the model records, '/' for '.', such as encoder/layers/0/attention/weights
///                    [heads, T, T], encoder/layers/0/output [T, D], static and contextual [T, D]
///
/// Returns the number of sentences. Throws UserError when the output exists or a line of the data
/// is invalid, FileError when writing fails; no file is left then.
Index write_activations(const LoadedModel& model, const std::filesystem::path& data,
                        const std::filesystem::path& output, ReadCallback& callback);

}  // namespace qkv
