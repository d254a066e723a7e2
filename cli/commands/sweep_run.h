#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/shared.h"
#include "train/loop/sweep.h"
#include "train/loop/trainer.h"

namespace qkv::commands {

/// A run of a sweep and its results.
struct VariantRun {
  std::uint64_t seed;
  Index fold;  ///< 0 without cross-validation
  std::filesystem::path folder;
  Index parameters;
  Outcome outcome;
  std::vector<std::string> left_out;  ///< probes that cannot be asked
  std::vector<VariantProbe> probes = {};
  std::optional<Evaluation> valid = {};  ///< of the best checkpoint
};

/// Trains a run from where its folder is, to its end or to a signal, and measures it; one that is
/// finished is measured alone. Probes that `other_data` cannot answer are left out. Throws
/// UserError when the run is being trained, or was with other options.
VariantRun carry_out(SweepRun job, bool other_data, Callback& callback);

/// The signal that came to one of the ranks; 0: none did.
int received_by_any(const StopSignal& stop, const Communicator& ranks);

/// Carries out the runs, each rank every so many of them in their order. Rank 0 returns the
/// outcomes of all, by their number, having read the runs of the others from their folders; another
/// rank, and any after a signal, only of its own.
std::vector<std::optional<VariantRun>> all_carried_out(const std::vector<SweepRun>& jobs,
                                                       bool other_data,
                                                       const std::vector<std::size_t>& order,
                                                       const StopSignal& stop,
                                                       const Communicator& ranks);

}  // namespace qkv::commands
