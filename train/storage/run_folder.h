#pragma once

#include <filesystem>
#include <optional>

#include "train/storage/checkpoint.h"

namespace qkv {

/// The files of a run:
///
///   config.toml  metrics.jsonl  checkpoints/step-00000500.h5 ...  best.h5  last.h5  report.html
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& path() const { return root_; }
  std::filesystem::path config() const { return root_ / "config.toml"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  std::filesystem::path best() const { return root_ / "best.h5"; }
  std::filesystem::path last() const { return root_ / "last.h5"; }
  std::filesystem::path report() const { return root_ / "report.html"; }
  std::filesystem::path checkpoint(std::int64_t step) const;

  bool holds_checkpoints() const;
  /// Creates the folder. Throws UserError when it holds a checkpoint already, FileError when it
  /// cannot be created.
  void create() const;
  /// Removes the files of an earlier run.
  void clear() const;

  /// Writes the checkpoint as step-N.h5 and last.h5, with `best` also as best.h5, then removes all
  /// but the `keep` newest step files.
  void save(const Checkpoint& checkpoint, bool best, Index keep) const;
  /// Step files, newest first.
  std::vector<std::filesystem::path> checkpoints() const;

 private:
  std::filesystem::path root_;
};

/// The folders in `folder` that hold checkpoints, in alphabetical order.
std::vector<std::filesystem::path> runs_in(const std::filesystem::path& folder);

/// Throws UserError when the folder holds no checkpoint, naming the runs in it where it is the
/// folder of a comparison.
void require_run(const RunFolder& folder);

/// The checkpoint file of `model`, a checkpoint file or a run folder: of a folder the best, else
/// the newest. Throws UserError when there is none.
std::filesystem::path find_checkpoint(const std::filesystem::path& model);

}  // namespace qkv
