#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "train/loop/trainer.h"
#include "train/storage/run_lock.h"

/// The life cycle of a run in its folder, which train, resume and compare share. Who calls these
/// has locked the folder (`RunFolder::lock`).
namespace qkv {

/// Creates the folder, writes the config and trains. Throws UserError when the folder holds a
/// checkpoint already, and as `require_equal_ranks` and `train` do. Of several ranks, rank 0 alone
/// writes to the folder.
Outcome start(Training& training, const RunFolder& folder, Callback& callback,
              const Communicator& ranks = single_process);

/// Creates the folder of a run with this config whose only checkpoint is `checkpoint`, as
/// `imported` gives it (train/exchange/exchange.h). Throws UserError when the folder holds a
/// checkpoint already.
void start_from(Checkpoint checkpoint, const Config& config, const RunFolder& folder);

/// Continues from the checkpoint that `training` was restored from, after the folder was made to
/// agree with it whatever a kill left: metrics of later steps are dropped, lost ones come from the
/// checkpoint, best.h5 and last.h5 are remade, surplus and temporary files removed. When the file
/// of the best checkpoint is lost, the callback gets a message and that of `training` stands
/// in until the next evaluation. `seconds` counts the earlier sessions, too. The number of ranks
/// may be another than in these; errors and ranks as in `start`.
Outcome resume(Training& training, const RunFolder& folder, Callback& callback,
               const Communicator& ranks = single_process);

/// The outcome of a run that has reached its last step and was tested; its module becomes the
/// best checkpoint, as after `train`. Nothing when there is training left. The folder is repaired
/// as by `resume`.
std::optional<Outcome> finished(Training& training, const RunFolder& folder, Callback& callback);

/// The newest valid checkpoint (`read_valid_checkpoint`) and its file; the callback gets a message
/// for each other.
/// Throws UserError when the folder holds no run, FileError when none of its checkpoints is valid.
std::pair<Checkpoint, std::filesystem::path> newest_valid_checkpoint(const RunFolder& folder,
                                                                     Callback& callback);

}  // namespace qkv
