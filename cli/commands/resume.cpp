#include "cli/commands/training.h"

namespace qkv::commands {
namespace {

struct ResumeOptions {
  std::string run;
  std::vector<std::string> set;
  bool check = false;
};

Document continue_run(const ResumeOptions& options) {
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
  return conclude(run, folder, outcome, options.check);
}

}  // namespace

void add_resume(CommandLine& program) {
  add_command<ResumeOptions>(
      program, "resume", "Continue from the newest valid checkpoint of a run",
      [](Command& command, ResumeOptions& options) {
        command.add_option("RUN", options.run, "Folder of the run, such as runs/bank").required();
        command.add_option("--set", options.set, "Change an option: --set train.steps=1000")
            .repeated();
        add_threads_option(command);
        add_check_flag(command, options.check);
      },
      continue_run);
}

}  // namespace qkv::commands
