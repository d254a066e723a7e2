#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/loop/callback.h"
#include "train/ranks/communicator.h"
#include "train/run/run.h"

/// A sweep: runs of the variants of a config over seeds or folds, each in a folder of its own.
namespace qkv {

struct SweepOptions {
  std::vector<std::string> only;  ///< names of variants; empty: all
  Index seeds = 1;                ///< with which each variant is trained, counting on from its own
  Index folds = 0;                ///< of a cross-validation with each seed; 0: none
};

struct SweepRun {
  std::string variant;
  Config config;
  RunFolder folder;
  Index fold = 0;    ///< 0: no cross-validation
  Index number = 1;  ///< among the runs of its variant
};

/// The runs, variant by variant, in folders below `parent`; a file without variants has one, the
/// config itself. Throws UserError for unknown names, and where two variants would share a folder,
/// be they chosen or not.
std::vector<SweepRun> runs_of(const ConfigFile& file, const SweepOptions& options,
                              const std::filesystem::path& parent);

/// The checkpoint from which a run continues, if there is one. Throws UserError when it was
/// trained with other options.
std::optional<std::pair<Checkpoint, std::filesystem::path>> checkpoint_for(const SweepRun& run,
                                                                           Callback& callback);

/// Leaves nothing of what was trained before. Throws UserError when one of the runs is being
/// trained.
void clear(const std::vector<SweepRun>& runs);

/// The numbers of the runs, the longest first, on every rank the same; with `restart`, after
/// nothing is left of what was trained before. `check` is called with a run of each variant before
/// anything is trained. Throws UserError for all that can be wrong with a variant's data or with an
/// earlier run, and when one of the runs is being trained.
std::vector<std::size_t> order_of(const std::vector<SweepRun>& runs, bool restart,
                                  const std::function<void(Run&)>& check,
                                  const Communicator& ranks);

/// Gives every rank the numbers of rank 0, which are as many on all.
void take_from_first_rank(std::span<std::size_t> numbers, const Communicator& ranks);

/// Calls `work` with each of the numbers in turn: as many calls side by side as there are threads,
/// each on one of them, which small models use better than all of them one run. Several calls are
/// not `alone`. After an error or where `is_stopped`, no more is begun. Throws the error of the
/// first number that failed.
void for_each_side_by_side(const std::vector<std::size_t>& numbers,
                           const std::function<bool()>& is_stopped,
                           const std::function<void(std::size_t number, bool alone)>& work);

/// Dates the configs in the order of the runs, in which a report lists them: runs side by side
/// begin at one time.
void date_configs(const std::vector<SweepRun>& runs);

}  // namespace qkv
