#include <deque>

#include "cli/commands/training.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::string config;
  std::vector<std::string> only;
  std::vector<std::string> set;
  bool restart = false;
  bool check = false;
};

/// A variant and where its run is.
struct Job {
  Variant variant;
  RunFolder folder;
};

struct VariantResult {
  std::string name;
  Index parameters;
  Outcome outcome;
  std::vector<VariantProbe> probes;
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
    variants.push_back(*found);
  }
  return variants;
}

/// "learned, 4 heads" -> "learned-4-heads"
std::string folder_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      result += c;
    else if (!result.empty() && result.back() != '-')
      result += '-';
  }
  return result;
}

/// The checkpoint from which a variant continues, if there is one. Throws UserError when it was
/// trained with other options.
std::optional<std::pair<Checkpoint, fs::path>> checkpoint_for(const Job& job, Callback& callback) {
  if (!job.folder.holds_checkpoints()) return std::nullopt;
  auto newest = newest_valid_checkpoint(job.folder, callback);
  const std::string differences =
      differing_options(config_of(newest.first, newest.second), job.variant.config);
  require<UserError>(differences.empty(),
                     "{} was trained with other options: {}; --restart trains it again",
                     job.folder.path().string(), differences);
  return newest;
}

/// What is to be done. All that can be wrong with a variant's data or with an earlier run is found
/// here, before hours of training. Throws UserError.
std::vector<Job> jobs_of(const CompareOptions& options, const ConfigFile& file,
                         const fs::path& parent) {
  std::vector<Job> jobs;
  Callback silent;  // `carried_out` tells again what is damaged
  for (const Variant& variant : chosen_variants(file, options.only)) {
    jobs.push_back({variant, RunFolder(parent / folder_name(variant.name))});
    if (options.restart || !checkpoint_for(jobs.back(), silent))
      check_probes(start_run(variant.config));
  }
  return jobs;
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
  return is_new ? start(run, job.folder, callback) : resume(run, job.folder, callback);
}

VariantResult carried_out(const Job& job, Callback& callback) {
  const Config& config = job.variant.config;
  const RunLock lock(job.folder.path());
  const auto saved = checkpoint_for(job, callback);
  Run run = saved ? restore_run(config, saved->first, saved->second) : start_run(config);
  const Outcome outcome = outcome_of(job, run, !saved, callback);
  VariantResult result{job.variant.name, parameter_count(*run.network), outcome, {}};
  if (!outcome.signal) result.probes = probed(run, job.variant.name);
  return result;
}

/// The command that continues this one.
std::string continuation(const CompareOptions& options) {
  std::string command = "qkv compare " + shell_word(options.config);
  for (const std::string& name : options.only) command += " --only " + shell_word(name);
  for (const std::string& change : options.set) command += " --set " + shell_word(change);
  return command;
}

Json to_json(const std::vector<VariantResult>& results) {
  Json variants = Json::array();
  for (const VariantResult& result : results) {
    Json variant = {{"name", result.name},
                    {"parameters", result.parameters},
                    {"seconds", result.outcome.seconds}};
    if (result.outcome.test) variant["test"] = commands::to_json(*result.outcome.test);
    variant["probes"] = commands::to_json(result.probes);
    variants.push_back(variant);
  }
  return {{"variants", variants}};
}

/// The metrics that any of the variants was measured by, in order.
std::vector<std::string> metrics_of(const std::vector<VariantResult>& results) {
  std::vector<std::string> names;
  for (const VariantResult& result : results) {
    if (!result.outcome.test) continue;
    for (const auto& [name, value] : result.outcome.test->metrics)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

/// A variant without test data has dashes for its results.
Rows to_table(const std::vector<VariantResult>& results) {
  const std::vector<std::string> metrics = metrics_of(results);
  Rows rows = {{"variant", "parameters", "seconds", "test loss"}};
  for (const std::string& metric : metrics) rows.front().push_back("test " + metric);
  for (const auto& [name, parameters, outcome, probes] : results) {
    const auto& test = outcome.test;
    rows.push_back({name, fmt::format("{}", parameters), fmt::format("{:.1f}", outcome.seconds),
                    test ? fmt::format("{:.4f}", test->loss) : "-"});
    for (const std::string& metric : metrics) {
      const auto value = test ? test->find(metric) : std::nullopt;
      rows.back().push_back(value ? fmt::format("{:.4f}", *value) : "-");
    }
  }
  return rows;
}

std::vector<VariantProbe> probes_of(const std::vector<VariantResult>& results) {
  std::vector<VariantProbe> probes;
  for (const VariantResult& result : results)
    probes.insert(probes.end(), result.probes.begin(), result.probes.end());
  return probes;
}

Document compare(const CompareOptions& options) {
  StopSignal stop;
  Progress progress(stop);
  const ConfigFile file = read_config(options.config, options.set);
  require<UserError>(!file.variants.empty(), "{} has no [[variant]] to compare", options.config);
  const fs::path parent = fs::path("runs") / (file.base.name + "-compare");
  const auto jobs = jobs_of(options, file, parent);
  if (options.restart) clear(jobs);
  std::vector<VariantResult> results;
  for (const Job& job : jobs) {
    results.push_back(carried_out(job, progress));
    const Outcome& outcome = results.back().outcome;
    if (!outcome.signal) continue;
    Document document;
    note_stopped(document, outcome, continuation(options));
    return document;
  }
  const auto probes = probes_of(results);
  Document document;
  document.data = to_json(results);
  document.add_table(to_table(results));
  if (!probes.empty()) {
    document.add_text("\n");
    document.add_table(commands::to_table(probes));
  }
  note_written(document, parent);
  judge(document, probes, options.check);
  return document;
}

}  // namespace

void add_compare(CommandLine& program) {
  add_command<CompareOptions>(
      program, "compare",
      "Train every [[variant]] of a config and print one table; again, it continues",
      [](Command& command, CompareOptions& options) {
        command.add_option("CONFIG", options.config, "TOML file with variants").required();
        command.add_option("--only", options.only, "Name of a variant; may be given several times")
            .repeated();
        command.add_option("--set", options.set, "Change an option of all variants").repeated();
        command.add_flag("--restart", options.restart,
                         "Train again from step 0 instead of resuming an earlier comparison");
        add_threads_option(command);
        add_check_flag(command, options.check);
      },
      compare);
}

}  // namespace qkv::commands
