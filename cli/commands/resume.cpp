#include "cli/commands/training.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string run;
  std::vector<std::string> set;
  Reporting reporting;
};

int run(const Options& options) {
  StopSignal stop;
  Progress progress(stop);
  const RunFolder folder(options.run);
  const auto [checkpoint, file] = newest_valid_checkpoint(folder, progress);
  Config config = config_of(checkpoint, file);
  const ModelOptions trained = config.model;
  apply_overrides(config, options.set);
  require<UserError>(config.model == trained,
                     "--set: a resume takes the model from the checkpoint; start a new run to "
                     "change options such as model.width");
  require_data(config, options.run, "--set task.train=FILE or the like");
  Run run = restore_run(config, checkpoint, file);
  const Outcome outcome = resume(run, folder, progress);
  return conclude(run, folder, outcome, options.reporting);
}

}  // namespace

void add_resume(CommandLine& program) {
  add_command<Options>(
      program, "resume", "Continue from the newest valid checkpoint of a run",
      [](Command& command, Options& options) {
        command.add_option("RUN", options.run, "Folder of the run, such as runs/bank").required();
        command.add_option("--set", options.set, "Change an option: --set train.steps=1000")
            .repeated();
        add_threads_option(command);
        add_reporting_flags(command, options.reporting);
      },
      run);
}

}  // namespace qkv::commands
