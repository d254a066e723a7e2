#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <thread>

#include "cli/commands/compare_results.h"
#include "cli/commands/training.h"
#include "core/parallel.h"

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
  Index fold = 0;  ///< of the cross-validation; 0: none
};

std::vector<Variant> chosen_variants(const ConfigFile& file, const std::vector<std::string>& only) {
  if (only.empty()) return file.variants;
  std::vector<Variant> variants;
  for (const std::string& name : only) {
    const auto found = std::ranges::find(file.variants, name, &Variant::name);
    std::string known;
    for (const Variant& variant : file.variants)
      known += (known.empty() ? "" : ", ") + variant.name;
    require<UserError>(found != file.variants.end(), "--only {}: no such variant; there are: {}",
                       name, known);
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
      for (Index i = 0; i < std::max(options.seeds, options.folds); ++i)
        jobs.push_back(job_of(variant, i, options, parent));
    return jobs;
  };
  require_folders(runs_of(file.variants));
  return runs_of(chosen_variants(file, options.only));
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
/// training. Throws UserError.
void check(const std::vector<Job>& jobs, bool restart) {
  Callback silent;  // `carried_out` tells again what is damaged
  std::string checked;
  for (const Job& job : jobs) {
    if (!restart && checkpoint_for(job, silent)) continue;
    if (checked != job.variant) check_probes(start_run(job.config));
    checked = job.variant;
  }
}

/// Removes what was trained before. Throws UserError when one of the runs is being trained.
void clear(const std::vector<Job>& jobs) {
  std::deque<RunLock> locks;
  std::error_code missing;
  for (const Job& job : jobs)
    if (fs::is_directory(job.folder.path(), missing)) locks.emplace_back(job.folder.path());
  for (const Job& job : jobs) job.folder.clear();
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
};

Done carried_out(const Job& job, Callback& callback) {
  const RunLock lock(job.folder.path());
  const auto saved = checkpoint_for(job, callback);
  Run run = saved ? restore_run(job.config, saved->first, saved->second, callback)
                  : start_run(job.config, callback);
  const Outcome outcome = outcome_of(job, run, !saved, callback);
  Done done{parameter_count(*run.network), {job.config.seed, job.fold, outcome, {}}};
  if (!outcome.signal) done.result.probes = probed(run, job.variant);
  return done;
}

/// Carries out the jobs in turn: as many side by side as there are threads, each on one of them,
/// which small models use better than all of them one run. After a signal or an error no more is
/// begun. Throws the error of the first job that failed.
class Workers {
 public:
  Workers(const std::vector<Job>& jobs, StopSignal& stop)
      : jobs_(jobs), stop_(stop), done_(jobs.size()), failures_(jobs.size()) {
    const auto count = std::min<std::size_t>(static_cast<std::size_t>(threads()), jobs.size());
    if (count > 1) set_threads(1);
    {
      std::vector<std::jthread> others;
      try {
        while (others.size() + 1 < count) others.emplace_back([this, count] { work(count); });
      } catch (const std::system_error&) {  // no more threads: with fewer, then
      }
      work(count);
    }
    for (const auto& failure : failures_)
      if (failure) std::rethrow_exception(failure);
  }

  /// In the order of the jobs; empty where a signal came before.
  const std::vector<std::optional<Done>>& done() const { return done_; }

 private:
  std::unique_ptr<Callback> progress_of(const Job& job, std::size_t side_by_side) const {
    if (side_by_side > 1) return std::make_unique<SideProgress>(job.config.name, stop_);
    return std::make_unique<Progress>(stop_);
  }

  void work(std::size_t side_by_side) {
    for (std::size_t i = 0; !failed_ && !stop_.received() && (i = next_++) < jobs_.size();) try {
        done_[i] = carried_out(jobs_[i], *progress_of(jobs_[i], side_by_side));
      } catch (...) {
        failures_[i] = std::current_exception();
        failed_ = true;
      }
  }

  const std::vector<Job>& jobs_;
  StopSignal& stop_;
  std::vector<std::optional<Done>> done_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::vector<std::exception_ptr> failures_;
};

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

Document compare(const CompareOptions& options) {
  StopSignal stop;
  require<UserError>(options.seeds == 1 || options.folds == 0,
                     "--folds and --seeds exclude each other; give one of them");
  std::vector<std::string> changes = options.set;
  if (options.folds > 0) changes.push_back(fmt::format("task.folds={}", options.folds));
  const ConfigFile file = read_config(options.config, changes);
  require<UserError>(!file.variants.empty(), "{} has no [[variant]] to compare", options.config);
  const fs::path parent = fs::path("runs") / (file.base.name + "-compare");
  const auto jobs = jobs_of(options, file, parent);
  check(jobs, options.restart);
  if (options.restart) clear(jobs);
  const auto done = Workers(jobs, stop).done();
  Document document;
  if (const int signal = stop.received()) {
    note_stopped(document, signal, continuation(options));
    return document;
  }
  date(jobs);
  const auto results = results_of(jobs, done);
  document.data = to_json(results);
  document.add_table(to_table(results));
  if (const Rows probes = probe_table(results); !probes.empty()) {
    document.add_text("\n");
    document.add_table(probes);
  }
  note_written(document, parent);
  judge(document, probes_of(results), options.check);
  return document;
}

}  // namespace

void add_compare(CommandLine& program) {
  add_command<CompareOptions>(
      program, "compare",
      "Train every [[variant]] of a config and print one table; again, it continues",
      [](Command& command, CompareOptions& options) {
        command.add_option("CONFIG", options.config, "TOML file with variants").required();
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
