#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "train/storage/checkpoint.h"
#include "train/storage/run_lock.h"

namespace qkv {

/// The files of a run:
///
///   config.toml  metrics.jsonl  checkpoints/step-00000500.h5 ...  best.h5  last.h5  report.html
///   tensorboard/events.out.tfevents.qkv  ensemble/NAME ...
///
/// ensemble/ holds further runs, whose models answer together with this one (`ensemble_of`).
/// best.h5 and last.h5 are other names of step files and follow from them: the newest checkpoint
/// says which step is the best. tensorboard is there with train.tensorboard. `lock` is there while
/// the run is trained (train/storage/run_lock.h). checkpoints, tensorboard and ensemble that are
/// links are refused before anything is written: a run writes in its own folder alone.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& path() const { return root_; }
  std::filesystem::path config() const { return root_ / "config.toml"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  std::filesystem::path best() const { return root_ / "best.h5"; }
  std::filesystem::path last() const { return root_ / "last.h5"; }
  std::filesystem::path report() const { return root_ / "report.html"; }
  std::filesystem::path ensemble() const { return root_ / "ensemble"; }
  std::filesystem::path tensorboard() const { return root_ / "tensorboard"; }
  std::filesystem::path events() const { return tensorboard() / "events.out.tfevents.qkv"; }
  std::filesystem::path checkpoint(std::int64_t step) const;

  bool holds_checkpoints() const;
  /// Whether a run was started here, be it one that ended before its first checkpoint.
  bool holds_run() const;
  /// Keeps other processes from training here while this object or a copy of it is alive; throws as
  /// `RunLock` does.
  void lock() { lock_ = std::make_shared<const RunLock>(root_); }
  /// Throws FileError when the folder was locked and is another process's now.
  void require_held() const {
    if (lock_) lock_->require_held();
  }
  /// Creates the folder. Throws FileError when it cannot be created, UserError when a folder in it
  /// is a link.
  void create() const;
  /// Removes the files of an earlier run. Throws UserError when a folder in it
  /// is a link.
  void clear() const;
  /// Removes the runs of its ensemble; of a link the link alone. Throws as `clear`.
  void clear_ensemble() const;
  /// Removes temporary files that processes left when they were killed.
  void remove_leftovers() const;

  /// Writes the checkpoint as step-N.h5; then `settle`s and removes later steps, which belong to a
  /// continuation that was given up. Whenever the process is killed, the step files hold all that
  /// `settle` needs. Throws as `require_held`. `passing`: as in `settle`.
  void save(const Checkpoint& checkpoint, Index keep, std::int64_t passing = 0) const;
  /// Makes last.h5 a name of the step file of `step` and best.h5 one of that of `best_step` (0:
  /// none), then removes other step files up to `step` but for the `keep` newest, and that of
  /// `passing`, the step of a stop between two checkpoints (0: none).
  void settle(std::int64_t step, std::int64_t best_step, Index keep,
              std::int64_t passing = 0) const;
  /// Whether there is a valid step file of `step`, which is remade where only last.h5 or best.h5
  /// holds it.
  bool restore_step(std::int64_t step) const;
  /// Step files, newest first. Throws FileError when the folder cannot be read.
  std::vector<std::filesystem::path> checkpoints() const;
  /// The step of the newest of them; 0: there is none.
  std::int64_t newest_step() const;
  /// best.h5 and last.h5, if they exist.
  std::vector<std::filesystem::path> names() const;

 private:
  void require_no_links() const;

  std::filesystem::path root_;
  std::shared_ptr<const RunLock> lock_;
};

/// Reads a checkpoint to train on from. Throws CheckpointError also when a value is not finite or a
/// step file is of another step than its name says.
Checkpoint read_valid_checkpoint(const std::filesystem::path& file);

/// The folders in `folder` that hold checkpoints, in alphabetical order.
std::vector<std::filesystem::path> runs_in(const std::filesystem::path& folder);

/// The models whose probabilities are averaged for answers of `model`: itself, a checkpoint file or
/// run folder, and those of the runs in its folder `ensemble`, in alphabetical order.
std::vector<std::filesystem::path> ensemble_of(const std::filesystem::path& model);

/// Throws UserError when the folder holds no checkpoint, naming the runs in it where it is the
/// folder of a comparison.
void require_run(const RunFolder& folder);

/// The checkpoint file of `model`, a checkpoint file or a run folder: of a folder the best, else
/// the newest. Throws UserError when there is none, FileError when the folder cannot be read.
std::filesystem::path find_checkpoint(const std::filesystem::path& model);

}  // namespace qkv
