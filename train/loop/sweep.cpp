#include "train/loop/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <span>
#include <system_error>

#include "core/joining_thread.h"
#include "core/parallel.h"
#include "train/loop/equal_ranks.h"
#include "train/loop/session.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

void require_known(const std::vector<Variant>& variants, const std::vector<std::string>& names) {
  std::string known;
  for (const Variant& variant : variants) known += (known.empty() ? "" : ", ") + variant.name;
  for (const std::string& name : names)
    require<UserError>(std::ranges::find(variants, name, &Variant::name) != variants.end(),
                       "--only {}: no such variant; there are: {}", name, known);
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
  require<UserError>(!result.empty(),
                     "the variant \"{}\" needs a letter or a digit in its name, for its folder",
                     name);
  return result;
}

/// Run `i` of a variant: all folds with the first seed, which is the variant's, and so on.
SweepRun run_of(const Variant& variant, Index i, const SweepOptions& options,
                const fs::path& parent) {
  std::string folder = folder_name(variant.name);
  SweepRun run{variant.name, variant.config, RunFolder(parent / folder)};
  run.number = i + 1;
  const auto name_after = [&](std::string_view what, auto number) {
    run.config.name += fmt::format(", {} {}", what, number);
    folder += fmt::format("-{}-{}", what, number);
  };
  const Index folds = std::max<Index>(options.folds, 1);
  if (i >= folds) {
    run.config.seed += static_cast<std::uint64_t>(i / folds);
    name_after("seed", run.config.seed);
  }
  if (options.folds > 0) {
    run.fold = run.config.task.fold = i % folds + 1;
    name_after("fold", run.fold);
  }
  run.folder = RunFolder(parent / folder);
  return run;
}

/// An estimate of the operations of a run's training.
double cost_of(const Run& run) {
  const Config& config = run.config;
  return static_cast<double>(run.last_step) * static_cast<double>(config.train.batch) *
         static_cast<double>(config.model.max_length) *
         static_cast<double>(parameter_count(*run.network));
}

/// The costs of the runs; 0 for one that was begun.
std::vector<double> checked(const std::vector<SweepRun>& runs, bool restart,
                            const std::function<void(Run&)>& check) {
  Callback silent;  // training reports damage again
  std::vector<double> costs;
  std::map<std::string, double> of_variant;
  for (const SweepRun& run : runs) {
    if (!restart && checkpoint_for(run, silent)) {
      costs.push_back(0);
      continue;
    }
    if (!of_variant.contains(run.variant)) {
      Run started = start_run(run.config);
      check(started);
      of_variant[run.variant] = cost_of(started);
    }
    costs.push_back(of_variant[run.variant]);
  }
  return costs;
}

}  // namespace

std::vector<SweepRun> runs_of(const ConfigFile& file, const SweepOptions& options,
                              const fs::path& parent) {
  std::vector<Variant> variants = file.variants;
  if (variants.empty()) variants.push_back({file.base.name, file.base});
  require_known(variants, options.only);
  std::vector<SweepRun> runs;
  std::map<std::string, std::string> folders;
  const auto& only = options.only;
  for (const Variant& variant : variants)
    for (Index i = 0; i < options.seeds * std::max<Index>(options.folds, 1); ++i) {
      SweepRun run = run_of(variant, i, options, parent);
      const std::string folder = run.folder.path().filename();
      const auto [other, is_new] = folders.emplace(folder, variant.name);
      require<UserError>(is_new,
                         "the variants \"{}\" and \"{}\" would share the folder {}; rename one so "
                         "that a letter or a digit differs",
                         other->second, variant.name, folder);
      if (only.empty() || std::ranges::find(only, variant.name) != only.end())
        runs.push_back(std::move(run));
    }
  return runs;
}

std::optional<std::pair<Checkpoint, fs::path>> checkpoint_for(const SweepRun& run,
                                                              Callback& callback) {
  if (!run.folder.holds_checkpoints()) return std::nullopt;
  auto newest = newest_valid_checkpoint(run.folder, callback);
  const std::string differences =
      differing_options(config_of(newest.first, newest.second), run.config);
  require<UserError>(differences.empty(),
                     "{} was trained with other options: {}; --restart trains it again",
                     run.folder.path().string(), differences);
  return newest;
}

void clear(const std::vector<SweepRun>& runs) {
  std::deque<RunLock> locks;
  std::error_code missing;
  for (const SweepRun& run : runs)
    if (fs::is_directory(run.folder.path(), missing)) locks.emplace_back(run.folder.path());
  for (const SweepRun& run : runs) {
    run.folder.clear();
    run.folder.clear_ensemble();
  }
}

std::vector<std::size_t> order_of(const std::vector<SweepRun>& runs, bool restart,
                                  const std::function<void(Run&)>& check,
                                  const Communicator& ranks) {
  std::vector<Config> configs;
  configs.reserve(runs.size());
  for (const SweepRun& run : runs) configs.push_back(run.config);
  require_equal_configs(configs, ranks);
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (ranks.rank() == 0) {
    const auto costs = checked(runs, restart, check);
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return costs[i]; });
    if (restart) clear(runs);
  }
  take_from_first_rank(order, ranks);
  return order;
}

void take_from_first_rank(std::span<std::size_t> numbers, const Communicator& ranks) {
  std::vector<Index> sizes(static_cast<std::size_t>(ranks.size()), 0);
  sizes.front() = static_cast<Index>(numbers.size_bytes());
  ranks.all_gather(std::as_writable_bytes(numbers), sizes);
}

void for_each_side_by_side(const std::vector<std::size_t>& numbers,
                           const std::function<bool()>& is_stopped,
                           const std::function<void(std::size_t number, bool alone)>& work) {
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(threads()), numbers.size());
  std::atomic<std::size_t> next = 0;
  std::mutex failing;
  std::map<std::size_t, std::exception_ptr> failures;
  std::atomic<bool> failed = false;
  const auto work_on = [&] {
    for (std::size_t i = 0; !failed && !is_stopped() && (i = next++) < numbers.size();) try {
        work(numbers[i], count <= 1);
      } catch (...) {
        const std::lock_guard lock(failing);
        failures[numbers[i]] = std::current_exception();
        failed = true;
      }
  };
  const int all_threads = threads();
  if (count > 1) set_threads(1);
  {
    std::vector<JoiningThread> others;
    try {
      while (others.size() + 1 < count) others.emplace_back(work_on);
    } catch (const std::system_error&) {  // the system has no more threads
    }
    work_on();
  }
  set_threads(all_threads);
  if (failed) std::rethrow_exception(failures.begin()->second);
}

void date_configs(const std::vector<SweepRun>& runs) {
  auto time = fs::file_time_type::clock::now();
  std::error_code ignored;
  for (const SweepRun& run : runs)
    fs::last_write_time(run.folder.config(), time += std::chrono::milliseconds(1), ignored);
}

}  // namespace qkv
