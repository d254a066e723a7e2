#include "cli/commands/sweep_run.h"

#include "cli/commands/training.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

Outcome outcome_of(const SweepRun& job, Run& run, bool is_new, Callback& callback) {
  if (const auto outcome = is_new ? std::nullopt : finished(run, job.folder, callback)) {
    callback.on_message(fmt::format("{}: finished at step {}; --restart trains it again",
                                    run.config.name, run.step));
    return *outcome;
  }
  std::error_code missing;
  fs::remove(RunFolder(job.folder.path().parent_path()).report(), missing);  // soon out of date
  TensorBoard logged(run.config, job.folder, callback);
  return is_new ? start(run, job.folder, logged) : resume(run, job.folder, logged);
}

}  // namespace

VariantRun carry_out(SweepRun job, bool other_data, Callback& callback) {
  job.folder.lock();
  const auto saved = checkpoint_for(job, callback);
  Run run = saved ? restore_run(job.config, saved->first, saved->second, callback)
                  : start_run(job.config, callback);
  auto left_out = other_data ? leave_out_probes(run) : std::vector<std::string>();
  const Outcome outcome = outcome_of(job, run, !saved, callback);
  VariantRun done{job.config.seed, job.fold, parameter_count(*run.network), outcome,
                  std::move(left_out)};
  if (outcome.signal) return done;
  done.probes = probed(run, job.variant);
  if (!outcome.test && run.task->size(Split::valid) > 0)
    done.valid = run.task->evaluate(*run.network, Split::valid);
  return done;
}

}  // namespace qkv::commands
