#include <set>

#include "cli/commands/compare_results.h"
#include "cli/commands/training.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::string config;
  std::vector<std::string> set;
  SweepOptions sweep;
  bool restart = false;
  bool check = false;
};

std::string continuation(const CompareOptions& options) {
  std::string command = "qkv compare " + shell_word(options.config);
  for (const std::string& name : options.sweep.only) command += " --only " + shell_word(name);
  for (const std::string& change : options.set) command += " --set " + shell_word(change);
  if (options.sweep.seeds > 1) command += fmt::format(" --seeds {}", options.sweep.seeds);
  if (options.sweep.folds > 0) command += fmt::format(" --folds {}", options.sweep.folds);
  return command;
}

ConfigFile config_file(const CompareOptions& options) {
  const auto& [only, seeds, folds] = options.sweep;
  require<UserError>(seeds == 1 || folds == 0,
                     "--folds and --seeds exclude each other; give one of them");
  std::vector<std::string> changes = options.set;
  if (folds > 0) changes.push_back(fmt::format("task.fold=1/{}", folds));
  ConfigFile file = read_config(options.config, changes);
  require<UserError>(!file.variants.empty() || seeds > 1 || folds > 0,
                     "{} has no [[variant]] to compare; give --seeds N or --folds K for several "
                     "runs of it",
                     options.config);
  return file;
}

Document compare(const CompareOptions& options, const Communicator& ranks, const StopSignal& stop) {
  const ConfigFile file = config_file(options);
  const fs::path parent = fs::path("runs") / (file.base.name + "-compare");
  const auto jobs = runs_of(file, options.sweep, parent);
  Callback silent;
  const auto check = [&](Run& run) { check_or_leave_out_probes(run, file.other_data, silent); };
  const auto order = order_of(jobs, options.restart, check, ranks);
  const auto done = all_carried_out(jobs, file.other_data, order, stop, ranks);
  Document document;
  if (const int signal = received_by_any(stop, ranks)) {
    note_stopped(document, signal, continuation(options));
    return document;
  }
  if (ranks.rank() > 0) return document;
  date_configs(jobs);
  const auto results = results_of(jobs, done);
  document.data = to_json(results);
  document.add_table(to_table(document.data));
  if (const Cells probes = probe_table(results); !probes.empty()) document.add_table(probes);
  std::set<std::string> left_out;
  for (const auto& run : done) left_out.insert(run->left_out.begin(), run->left_out.end());
  for (const std::string& line : left_out) document.add_note("{}", line);
  note_written(document, parent);
  judge(document, probes_of(results), options.check);
  return document;
}

}  // namespace

Command compare_command() {
  const auto o = std::make_shared<CompareOptions>();
  return {
      .name = "compare",
      .summary =
          "Train every [[variant]] of a config, or continue, and print one table; under mpirun, "
          "ranks share the runs",
      .options = {required({"CONFIG", &o->config,
                            "TOML file with variants; with --seeds or --folds also one without"}),
                  {"--only NAME", &o->sweep.only, "Name of a variant; may be given several times"},
                  {"--set KEY=VALUE", &o->set, "Change an option of all variants"},
                  {"--seeds", &o->sweep.seeds,
                   "Runs of each variant, with seeds that count on from the config's; the table "
                   "gives mean and standard deviation [1]",
                   from_to(1, 1000)},
                  {"--folds", &o->sweep.folds,
                   "Cross-validation: runs of each variant, each tested on another part of the "
                   "training examples; the test data are not read",
                   from_to(2, 1000)},
                  {"--restart", &o->restart,
                   "Train again from step 0 instead of resuming an earlier comparison"},
                  threads_option(),
                  check_flag(o->check)},
      .run = [o](const Stream&) {
        return on_all_ranks([&](const Communicator& ranks, const StopSignal& stop) {
          return compare(*o, ranks, stop);
        });
      }};
}

}  // namespace qkv::commands
