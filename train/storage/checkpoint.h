#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"

namespace qkv {

/// Everything that resuming a run and using its model needs, as tensors and texts; independent of
/// models and optimizers.
///
/// In the file, an HDF5 file followed by a seal (train/storage/seal.h):
///
///     /                    attributes format = "qkv-checkpoint", version = 1, qkv_version, step,
///                          config; a config that is longer than an attribute can be is a dataset
///     /model/...           a dataset for each parameter, its path with '/' for '.'; with train.ema
///                          the averages
///     /optimizer/...       likewise; with train.ema also live/..., the parameters that are trained
///     /vocabulary/<name>   texts of fixed length, padded with zero bytes; where padding would
///                          take more than 1 MiB and 8 times their bytes, a group of `data`, the
///                          texts one after the other, and int64 `offsets`, where each begins and
///                          the last one ends
///     /progress/<name>     float64 scalars, and the texts `metrics`, `data_hash`, `valid_hash` and
///                          `init`
struct Checkpoint {
  std::int64_t step = 0;
  std::string config = {};                       ///< resolved TOML
  std::map<std::string, Tensor> model = {};      ///< by parameter path
  std::map<std::string, Tensor> optimizer = {};  ///< "first_moment.<parameter path>"
  std::map<std::string, std::vector<std::string>> vocabulary = {};  ///< "tokens", "labels"; UTF-8
  std::map<std::string, double> progress = {};                      ///< "best_score", "best_step"
  std::string metrics = {};     ///< of the run so far, JSON lines
  std::string data_hash = {};   ///< of the training data; empty when it is unknown
  std::string init = {};        ///< what train.init loaded, for people; empty without it
  std::string valid_hash = {};  ///< as `data_hash`, of the validation data; empty without any
};

/// A damaged checkpoint, or one that the format cannot hold.
struct CheckpointError : FileError {
  using FileError::FileError;
};

/// Writes a file atomically (`write_durably`); equal checkpoints give equal files. Throws
/// CheckpointError when a name has an empty part, contains '/' or is used for both a tensor and a
/// group of them, or a text contains a zero byte; FileError when writing fails.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

/// The part of a checkpoint to read; using its model needs no state of the optimizer, which is
/// mostly twice as large as the model.
enum class CheckpointPart { all, without_optimizer };

/// Bit for bit what was written. The file's checksum is verified before anything else is read.
/// Throws CheckpointError naming the file when it is damaged, UserError when there is none, or it
/// is another kind of file or of another version of the format.
Checkpoint read_checkpoint(const std::filesystem::path& path,
                           CheckpointPart part = CheckpointPart::all);

/// The parameter or optimizer state that holds a value that is not finite; empty when none does.
std::string non_finite_tensor(const Checkpoint& checkpoint);

/// The step of the best checkpoint so far, 0: none yet. Nothing where the checkpoint names none.
std::optional<std::int64_t> best_step_of(const Checkpoint& checkpoint);

}  // namespace qkv
