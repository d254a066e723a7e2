#include "cli/commands/training.h"

namespace qkv::commands {
namespace {

struct ResumeOptions {
  std::string run;
  std::vector<std::string> set;
  bool check = false;
};

Config changed(const Config& config, const ResumeOptions& options) {
  Config result = config;
  apply_overrides(result, options.set);
  require_resumable(config, result);
  require_data(result, options.run, "--set task.train=FILE or the like");
  return result;
}

/// A run that ended before its first checkpoint follows from its config.
Run restart(const ResumeOptions& options, const RunFolder& folder, Callback& progress) {
  Run run = start_run(changed(config_of(folder), options), progress);
  progress.on_message("no checkpoint was written yet: starting at step 0");
  return run;
}

/// The config of a checkpoint with what its run's config.toml says otherwise: it was edited, or
/// written by a resume that ended before it saved.
Config continued(const Checkpoint& checkpoint, const std::filesystem::path& file,
                 const RunFolder& folder, Callback& progress) {
  Config config = config_of(checkpoint, file);
  if (!std::filesystem::exists(folder.config())) return config;
  Config edited = config_of(folder);
  const Config saved = config_of(checkpoint, folder.config());  // paths lead from there, too
  if (edited == saved) return config;
  require_resumable(saved, edited,
                    fmt::format("{} (remove it to resume with the options of the checkpoint)",
                                folder.config().string()));
  if (const std::string changes = differing_options(saved, edited); !changes.empty())
    progress.on_message(fmt::format("{}: changed since the last checkpoint: {}",
                                    folder.config().string(), changes));
  return edited;
}

Run restore(const ResumeOptions& options, const RunFolder& folder, Callback& progress) {
  const auto [checkpoint, file] = newest_valid_checkpoint(folder, progress);
  const Config config = changed(continued(checkpoint, file, folder, progress), options);
  return restore_run(config, checkpoint, file, progress);
}

Document continue_run(const ResumeOptions& options) {
  return on_all_ranks([&](const Communicator& ranks, const StopSignal& stop) {
    const auto progress = progress_of(ranks, stop);
    RunFolder folder(options.run);
    if (!folder.holds_run()) require_run(folder);
    if (ranks.rank() == 0) folder.lock();
    const bool restores = folder.holds_checkpoints();
    Run run = (restores ? restore : restart)(options, folder, *progress);
    TensorBoard logged(run.config, folder, *progress);
    const Outcome outcome = (restores ? resume : start)(run, folder, logged, ranks);
    return ranks.rank() == 0 ? conclude(run, folder, outcome, options.check) : Document();
  });
}

}  // namespace

Command resume_command() {
  const auto o = std::make_shared<ResumeOptions>();
  return {.name = "resume",
          .summary = "Continue from the newest valid checkpoint of a run",
          .options = {required({"RUN", &o->run, "Folder of the run, such as runs/bank"}),
                      set_option(o->set), threads_option(), check_flag(o->check)},
          .run = [o](const Stream&) { return continue_run(*o); }};
}

}  // namespace qkv::commands
