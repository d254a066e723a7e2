#include "cli/commands/sweep_run.h"

#include <algorithm>

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
  VariantRun done{.seed = job.config.seed,
                  .fold = job.fold,
                  .folder = job.folder.path(),
                  .parameters = parameter_count(*run.network),
                  .outcome = outcome,
                  .left_out = std::move(left_out)};
  if (outcome.signal) return done;
  done.probes = probed(run, job.variant);
  if (run.task->size(Split::valid) > 0) done.valid = run.task->evaluate(*run.network, Split::valid);
  return done;
}

int received_by_any(const StopSignal& stop, const Communicator& ranks) {
  return std::ranges::max(all_gather(ranks, stop.received()));
}

std::vector<std::optional<VariantRun>> all_carried_out(const std::vector<SweepRun>& jobs,
                                                       bool other_data,
                                                       const std::vector<std::size_t>& order,
                                                       const StopSignal& stop,
                                                       const Communicator& ranks) {
  StopQuestion question(stop);
  question.ask();  // from here on: a run may read its data while others train
  std::vector<std::size_t> own, others;
  for (std::size_t i = 0; i < order.size(); ++i)
    (static_cast<Index>(i) % ranks.size() == ranks.rank() ? own : others).push_back(order[i]);
  const auto is_stopped = [&] { return stop.received() != 0; };
  std::vector<std::optional<VariantRun>> done(jobs.size());
  SharedLines shared;
  for_each_side_by_side(own, is_stopped, [&](std::size_t i, bool alone) {
    Progress progress(stop, alone && ranks.size() == 1 ? "" : jobs[i].config.name, shared);
    done[i] = carry_out(jobs[i], other_data, progress);
  });
  if (received_by_any(stop, ranks) || ranks.rank() > 0) return done;
  for_each_side_by_side(others, is_stopped, [&](std::size_t i, bool) {
    SilentProgress silent(stop);
    done[i] = carry_out(jobs[i], other_data, silent);
  });
  return done;
}

}  // namespace qkv::commands
