#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "cli/commands/compare_results.h"
#include "cli/commands/training.h"
#include "cli/step_benchmark.h"
#include "core/joining_thread.h"
#include "core/parallel.h"
#include "train/loop/equal_ranks.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::string config;
  std::vector<std::string> only;
  std::vector<std::string> set;
  Index seeds = 1;
  Index folds = 0;
  bool restart = false;
  bool check = false;
};

/// A run of a variant, and where it is.
struct Job {
  std::string variant;
  Config config;
  RunFolder folder;
  Index fold = 0;           ///< of the cross-validation; 0: none
  bool other_data = false;  ///< than the config's
};

/// The variants of the file, or the config itself where it has none and several runs are asked for.
std::vector<Variant> variants_of(const ConfigFile& file, const CompareOptions& options) {
  if (!file.variants.empty()) return file.variants;
  require<UserError>(options.seeds > 1 || options.folds > 0,
                     "{} has no [[variant]] to compare; give --seeds N or --folds K for several "
                     "runs of it",
                     options.config);
  return {Variant{file.base.name, file.base}};
}

std::vector<Variant> chosen_variants(const std::vector<Variant>& all,
                                     const std::vector<std::string>& only) {
  if (only.empty()) return all;
  std::vector<Variant> variants;
  for (const std::string& name : only) {
    const auto found = std::ranges::find(all, name, &Variant::name);
    std::string known;
    for (const Variant& variant : all) known += (known.empty() ? "" : ", ") + variant.name;
    require<UserError>(found != all.end(), "--only {}: no such variant; there are: {}", name,
                       known);
    if (std::ranges::find(variants, name, &Variant::name) == variants.end())
      variants.push_back(*found);
  }
  return variants;
}

/// "learned, 4 heads" -> "learned-4-heads"
std::string folder_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80)
      result += c;
    else if (!result.empty() && result.back() != '-')
      result += '-';
  }
  return result;
}

/// Run `i` of a variant. With folds, that of fold i + 1; else the first has the variant's name and
/// seed, and the others count on from there. Throws UserError when the name gives no folder.
Job job_of(const Variant& variant, Index i, const CompareOptions& options, const fs::path& parent) {
  const std::string folder = folder_name(variant.name);
  require<UserError>(!folder.empty(),
                     "the variant \"{}\" needs a letter or a digit in its name, for its folder",
                     variant.name);
  Job job{variant.name, variant.config, RunFolder(parent / folder)};
  const auto is_one_of_many = [&](std::string_view what, auto number) {
    job.config.name += fmt::format(", {} {}", what, number);
    job.folder = RunFolder(parent / fmt::format("{}-{}-{}", folder, what, number));
  };
  if (options.folds > 0) {
    job.fold = job.config.task.fold = i + 1;
    is_one_of_many("fold", job.fold);
  } else if (i > 0) {
    job.config.seed += static_cast<std::uint64_t>(i);
    is_one_of_many("seed", job.config.seed);
  }
  return job;
}

/// Throws UserError unless each run has a folder of its own.
void require_folders(const std::vector<Job>& jobs) {
  std::map<std::string, std::string> variants;
  for (const Job& job : jobs) {
    const std::string folder = job.folder.path().filename();
    const auto [other, is_new] = variants.emplace(folder, job.variant);
    require<UserError>(
        is_new,
        "the variants \"{}\" and \"{}\" would share the folder {}; rename one so that "
        "a letter or a digit differs",
        other->second, job.variant, folder);
  }
}

/// What is to be done, variant by variant. Throws UserError; where two variants would share a
/// folder also when only one of them is chosen, since it would take the other's.
std::vector<Job> jobs_of(const CompareOptions& options, const ConfigFile& file,
                         const fs::path& parent) {
  const auto runs_of = [&](const std::vector<Variant>& variants) {
    std::vector<Job> jobs;
    for (const Variant& variant : variants)
      for (Index i = 0; i < std::max(options.seeds, options.folds); ++i) {
        jobs.push_back(job_of(variant, i, options, parent));
        jobs.back().other_data = file.other_data;
      }
    return jobs;
  };
  const std::vector<Variant> variants = variants_of(file, options);
  require_folders(runs_of(variants));
  return runs_of(chosen_variants(variants, options.only));
}

/// The checkpoint from which a run continues, if there is one. Throws UserError when it was
/// trained with other options.
std::optional<std::pair<Checkpoint, fs::path>> checkpoint_for(const Job& job, Callback& callback) {
  if (!job.folder.holds_checkpoints()) return std::nullopt;
  auto newest = newest_valid_checkpoint(job.folder, callback);
  const std::string differences =
      differing_options(config_of(newest.first, newest.second), job.config);
  require<UserError>(differences.empty(),
                     "{} was trained with other options: {}; --restart trains it again",
                     job.folder.path().string(), differences);
  return newest;
}

/// Finds all that can be wrong with a variant's data or with an earlier run, before hours of
/// training. Returns the operations that each job takes; 0 for one that was begun. Throws
/// UserError.
std::vector<double> check(const std::vector<Job>& jobs, bool restart) {
  Callback silent;  // `carried_out` tells again what is damaged
  std::vector<double> operations;
  std::map<std::string, double> of_variant;
  for (const Job& job : jobs) {
    if (!restart && checkpoint_for(job, silent)) {
      operations.push_back(0);
      continue;
    }
    if (!of_variant.contains(job.variant)) {
      Run run = start_run(job.config);
      check_or_leave_out_probes(run, job.other_data, silent);
      of_variant[job.variant] =
          static_cast<double>(run.last_step) *
          step_operations(run, run.config.train.batch, run.config.model.max_length);
    }
    operations.push_back(of_variant[job.variant]);
  }
  return operations;
}

/// The jobs by their number, the longest first.
std::vector<std::size_t> longest_first(const std::vector<double>& operations) {
  std::vector<std::size_t> order(operations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return operations[i]; });
  return order;
}

/// Removes what was trained before. Throws UserError when one of the runs is being trained.
void clear(const std::vector<Job>& jobs) {
  std::deque<RunLock> locks;
  std::error_code missing;
  for (const Job& job : jobs)
    if (fs::is_directory(job.folder.path(), missing)) locks.emplace_back(job.folder.path());
  for (const Job& job : jobs) job.folder.clear();
}

/// The numbers of the jobs, the longest first, on every rank the same; with `restart`, after
/// nothing is left of what was trained before. Throws UserError.
std::vector<std::size_t> order_of(const std::vector<Job>& jobs, bool restart,
                                  const Communicator& ranks) {
  std::vector<Config> configs;
  configs.reserve(jobs.size());
  for (const Job& job : jobs) configs.push_back(job.config);
  require_equal_configs(configs, ranks);
  std::vector<std::size_t> order(jobs.size());
  if (ranks.rank() == 0) {
    order = longest_first(check(jobs, restart));
    if (restart) clear(jobs);
  }
  broadcast(ranks, std::span(order));
  return order;
}

Outcome outcome_of(const Job& job, Run& run, bool is_new, Callback& callback) {
  if (const auto outcome = is_new ? std::nullopt : finished(run, job.folder, callback)) {
    callback.on_message(fmt::format("{}: finished at step {}; --restart trains it again",
                                    run.config.name, run.step));
    return *outcome;
  }
  std::error_code missing;
  fs::remove(RunFolder(job.folder.path().parent_path()).report(),
             missing);  // it is about to be old
  TensorBoard logged(run.config, job.folder, callback);
  return is_new ? start(run, job.folder, logged) : resume(run, job.folder, logged);
}

/// What became of a job.
struct Done {
  Index parameters;
  VariantRun result;
  std::vector<std::string> left_out;  ///< probes that cannot be asked
};

Done carried_out(Job job, Callback& callback) {
  job.folder.lock();
  const auto saved = checkpoint_for(job, callback);
  Run run = saved ? restore_run(job.config, saved->first, saved->second, callback)
                  : start_run(job.config, callback);
  auto left_out = job.other_data ? leave_out_probes(run) : std::vector<std::string>();
  const Outcome outcome = outcome_of(job, run, !saved, callback);
  Done done{
      parameter_count(*run.network), {job.config.seed, job.fold, outcome, {}}, std::move(left_out)};
  if (outcome.signal) return done;
  done.result.probes = probed(run, job.variant);
  if (!outcome.test && run.task->size(Split::valid) > 0)
    done.result.valid = run.task->evaluate(*run.network, Split::valid);
  return done;
}

/// Carries out jobs in turn: as many side by side as there are threads, each on one of them, which
/// small models use better than all of them one run. After a signal or an error no more is begun.
class Workers {
 public:
  /// What shows the progress of a job, of which several run side by side or one alone.
  using ProgressOf = std::function<std::unique_ptr<Callback>(const Job&, bool alone)>;

  /// `order`: the numbers of the jobs to carry out. Throws the error of the first that failed.
  Workers(const std::vector<Job>& jobs, std::vector<std::size_t> order, StopSignal& stop,
          ProgressOf progress_of)
      : jobs_(jobs),
        order_(std::move(order)),
        stop_(stop),
        progress_of_(std::move(progress_of)),
        done_(jobs.size()),
        failures_(jobs.size()) {
    const auto count = std::min<std::size_t>(static_cast<std::size_t>(threads()), order_.size());
    if (count > 1) set_threads(1);
    {
      std::vector<JoiningThread> others;
      try {
        while (others.size() + 1 < count) others.emplace_back([this] { work(false); });
      } catch (const std::system_error&) {  // no more threads: with fewer, then
      }
      work(count <= 1);
    }
    for (const auto& failure : failures_)
      if (failure) std::rethrow_exception(failure);
  }

  /// By the number of the job; empty where a signal came before.
  const std::vector<std::optional<Done>>& done() const { return done_; }

 private:
  void work(bool alone) {
    for (std::size_t i = 0; !failed_ && !stop_.received() && (i = next_++) < order_.size();) {
      const std::size_t number = order_[i];
      try {
        done_[number] = carried_out(jobs_[number], *progress_of_(jobs_[number], alone));
      } catch (...) {
        failures_[number] = std::current_exception();
        failed_ = true;
      }
    }
  }

  const std::vector<Job>& jobs_;
  std::vector<std::size_t> order_;
  StopSignal& stop_;
  ProgressOf progress_of_;
  std::vector<std::optional<Done>> done_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::vector<std::exception_ptr> failures_;
};

/// The signal that came to one of the ranks; 0: none did.
int received_by_any(StopSignal& stop, const Communicator& ranks) {
  return std::ranges::max(all_gather(ranks, stop.received()));
}

/// Carries out the jobs, each rank every so many of them in their order. Rank 0 returns what became
/// of all, by their number, having read the runs of the others from their folders; another rank,
/// and any after a signal, does so only of its own.
std::vector<std::optional<Done>> all_carried_out(const std::vector<Job>& jobs,
                                                 const std::vector<std::size_t>& order,
                                                 StopSignal& stop, const Communicator& ranks) {
  StopQuestion question(stop);
  question.ask();  // from here on: a run may read its data while others train
  std::vector<std::size_t> own, others;
  for (std::size_t i = 0; i < order.size(); ++i)
    (static_cast<Index>(i) % ranks.size() == ranks.rank() ? own : others).push_back(order[i]);
  auto done =
      Workers(jobs, own, stop, [&](const Job& job, bool alone) -> std::unique_ptr<Callback> {
        if (alone && ranks.size() == 1) return std::make_unique<Progress>(stop);
        return std::make_unique<SideProgress>(job.config.name, stop);
      }).done();
  if (received_by_any(stop, ranks) || ranks.rank() > 0) return done;
  const auto read = Workers(jobs, others, stop, [&](const Job&, bool) {
                      return std::make_unique<SilentProgress>(stop);
                    }).done();
  for (const std::size_t i : others) done[i] = read[i];
  return done;
}

/// The runs of each variant together.
std::vector<VariantResult> results_of(const std::vector<Job>& jobs,
                                      const std::vector<std::optional<Done>>& done) {
  std::vector<VariantResult> results;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (results.empty() || results.back().name != jobs[i].variant)
      results.push_back({jobs[i].variant, done[i]->parameters, {}});
    results.back().runs.push_back(done[i]->result);
  }
  return results;
}

/// Dates the configs in the order of the jobs: a report lists the runs of a folder in that of their
/// dates, and runs side by side begin at one time.
void date(const std::vector<Job>& jobs) {
  auto time = fs::file_time_type::clock::now();
  std::error_code ignored;
  for (const Job& job : jobs)
    fs::last_write_time(job.folder.config(), time += std::chrono::milliseconds(1), ignored);
}

/// The command that continues this one.
std::string continuation(const CompareOptions& options) {
  std::string command = "qkv compare " + shell_word(options.config);
  for (const std::string& name : options.only) command += " --only " + shell_word(name);
  for (const std::string& change : options.set) command += " --set " + shell_word(change);
  if (options.seeds > 1) command += fmt::format(" --seeds {}", options.seeds);
  if (options.folds > 0) command += fmt::format(" --folds {}", options.folds);
  return command;
}

Document compare_on_rank(const CompareOptions& options, StopSignal& stop,
                         const Communicator& ranks) {
  require<UserError>(options.seeds == 1 || options.folds == 0,
                     "--folds and --seeds exclude each other; give one of them");
  std::vector<std::string> changes = options.set;
  if (options.folds > 0) changes.push_back(fmt::format("task.folds={}", options.folds));
  const ConfigFile file = read_config(options.config, changes);
  const fs::path parent = fs::path("runs") / (file.base.name + "-compare");
  const auto jobs = jobs_of(options, file, parent);
  const auto order = order_of(jobs, options.restart, ranks);
  const auto done = all_carried_out(jobs, order, stop, ranks);
  Document document;
  if (const int signal = received_by_any(stop, ranks)) {
    note_stopped(document, signal, continuation(options));
    return document;
  }
  if (ranks.rank() > 0) return document;
  date(jobs);
  const auto results = results_of(jobs, done);
  document.data = to_json(results);
  document.add_table(to_table(results));
  if (const Rows probes = probe_table(results); !probes.empty()) {
    document.add_text("\n");
    document.add_table(probes);
  }
  std::set<std::string> left_out;
  for (const auto& run : done) left_out.insert(run->left_out.begin(), run->left_out.end());
  for (const std::string& line : left_out) document.add_note("{}", line);
  note_written(document, parent);
  judge(document, probes_of(results), options.check);
  return document;
}

Document compare(const CompareOptions& options) {
  StopSignal stop;
  const auto ranks = connect();
  return on_all_ranks(*ranks, [&] { return compare_on_rank(options, stop, *ranks); });
}

}  // namespace

void add_compare(CommandLine& program) {
  add_command<CompareOptions>(
      program, "compare",
      "Train every [[variant]] of a config and print one table; again, it continues; under "
      "mpirun, each rank trains some of the runs",
      [](Command& command, CompareOptions& options) {
        command
            .add_option("CONFIG", options.config,
                        "TOML file with variants; with --seeds or --folds also one without")
            .required();
        command
            .add_option("--only NAME", options.only,
                        "Name of a variant; may be given several times")
            .repeated();
        command.add_option("--set KEY=VALUE", options.set, "Change an option of all variants")
            .repeated();
        command
            .add_option("--seeds", options.seeds,
                        "Runs of each variant, with seeds that count on from the config's; the "
                        "table gives mean and standard deviation [1]")
            .between(1, 1000);
        command
            .add_option("--folds", options.folds,
                        "Cross-validation: runs of each variant, each tested on another part of "
                        "the training examples; the test data are not looked at")
            .between(2, 1000);
        command.add_flag("--restart", options.restart,
                         "Train again from step 0 instead of resuming an earlier comparison");
        add_threads_option(command);
        add_check_flag(command, options.check);
      },
      compare);
}

}  // namespace qkv::commands
