#pragma once

#include <string>
#include <vector>

#include "cli/commands/sweep_run.h"

/// The results of `qkv compare` as tables and JSON.
namespace qkv::commands {

/// The runs of a variant, which differ in their seeds or folds alone.
struct VariantResult {
  std::string name;
  std::vector<VariantRun> runs;
};

/// The runs that were carried out, in the order of their first ones.
std::vector<VariantResult> results_of(const std::vector<SweepRun>& jobs,
                                      const std::vector<std::optional<VariantRun>>& done);

/// `test` and `probes` are those of the first run; `mean` and `std`, the sample standard
/// deviation, are over the runs, which are listed as `seeds` or `folds`. Where no run has test
/// data, `valid` takes the place of `test`; `split` says which it is.
Json to_json(const std::vector<VariantResult>& results);

/// A row for each variant of `to_json`; of several runs "mean ± standard deviation". The columns
/// name the split: "test loss", or "valid loss" where no run has test data. A variant without such
/// data has dashes.
Cells to_table(const Json& results);

/// The result of each probe or, for several runs, the number of runs that pass it; empty without
/// probes.
Cells probe_table(const std::vector<VariantResult>& results);

/// The probes of all variants and runs.
std::vector<VariantProbe> probes_of(const std::vector<VariantResult>& results);

}  // namespace qkv::commands
