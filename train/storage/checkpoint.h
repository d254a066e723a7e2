#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"

namespace qkv {

/// Everything that a run needs to go on, and that a reader needs to use the model; knows nothing of
/// models or optimizers.
///
/// In the file, an HDF5 file followed by a seal (train/seal.h):
///
///     /                    attributes format = "qkv-checkpoint", version = 1, qkv_version, step,
///                          config
///     /model/...           a dataset for each parameter, its path with '/' for '.'; with train.ema
///                          the averages
///     /optimizer/...       likewise; with train.ema also live/..., the parameters to train on
///     /vocabulary/<name>   texts of fixed length, padded with zero bytes
///     /progress/<name>     float64 scalars, and the text `metrics`
struct Checkpoint {
  std::int64_t step = 0;
  std::string config;                                          ///< resolved TOML
  std::map<std::string, Tensor> model;                         ///< by parameter path
  std::map<std::string, Tensor> optimizer;                     ///< "first_moment.<parameter path>"
  std::map<std::string, std::vector<std::string>> vocabulary;  ///< "tokens", "labels"; UTF-8
  std::map<std::string, double> progress;                      ///< "best_metric", "best_step"
  std::string metrics;                                         ///< of the run so far, JSON lines
};

/// A checkpoint that is damaged, of another kind or not to be read.
struct CheckpointError : UserError {
  using UserError::UserError;
};

/// Writes a file that is there whole or not at all (`write_durably`); equal checkpoints make equal
/// files. Throws CheckpointError when a name has an empty part, contains '/' or is used for both a
/// tensor and a group of them, or a text contains a zero byte; UserError when writing fails.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

/// Bit for bit what was written. The file's checksum is verified before anything else is read.
/// Throws CheckpointError naming the file.
Checkpoint read_checkpoint(const std::filesystem::path& path);

}  // namespace qkv
