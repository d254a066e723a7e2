#pragma once

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
  Index parameters;
  Outcome outcome;
  std::vector<std::string> left_out;  ///< probes that cannot be asked
  std::vector<VariantProbe> probes = {};
  std::optional<Evaluation> valid = {};  ///< of the best checkpoint, where there is no test split
};

/// Trains a run from where its folder is, to its end or to a signal, and measures it; one that is
/// finished is measured alone. Probes that `other_data` cannot answer are left out. Throws
/// UserError when the run is being trained, or was with other options.
VariantRun carry_out(SweepRun job, bool other_data, Callback& callback);

}  // namespace qkv::commands
