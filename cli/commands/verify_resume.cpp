#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <thread>

#include "cli/child_process.h"
#include "cli/commands/training.h"
#include "cli/standard_streams.h"
#include "core/parallel.h"
#include "train/run/run_difference.h"
#include "train/storage/durable_file.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct VerifyResumeOptions {
  std::string config;
  Index steps = 50;
  Index kills = 3;
  Index seed = 1;
};

/// A folder in the system's folder for temporary files, removed with all that it holds.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = fs::temp_directory_path() / "qkv-XXXXXX";
    require<FileError>(mkdtemp(name.data()) != nullptr,
                       "cannot create the temporary folder {}: {}; name another place with TMPDIR",
                       name, std::generic_category().message(errno));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// A run of so many steps that is evaluated and saved often. What it writes is compared, so that
/// its probes need not be checked.
Config short_run(Config config, std::int64_t steps) {
  TrainOptions& train = config.train;
  train.steps = steps;
  train.epochs = 0;
  train.patience = 0;
  train.eval_every = std::min(train.eval_every, std::max<std::int64_t>(steps / 5, 1));
  train.checkpoint_every = std::min(train.checkpoint_every, std::max<std::int64_t>(steps / 10, 1));
  config.probes.clear();
  return config;
}

Outcome train_uninterrupted(const Config& config, const RunFolder& folder, const StopSignal& stop) {
  set_threads(1);
  print_note(fmt::format("uninterrupted: 1 thread, evaluated every {} steps, saved every {}\n",
                         config.train.eval_every, config.train.checkpoint_every));
  Run run = start_run(config);
  Progress progress(stop);
  return start(run, folder, progress);
}

/// When a session is killed: `delay` seconds after there is a checkpoint of `step` or a later one.
struct Kill {
  std::int64_t step;
  double delay;
};

/// Kill `i` in a run that takes `seconds` without any: the kills are spread over its steps.
Kill kill_of(Index i, const VerifyResumeOptions& options, double seconds) {
  const Random random(static_cast<std::uint64_t>(options.seed), Purpose::testing,
                      static_cast<std::uint64_t>(i));
  const double fraction = 1 / static_cast<double>(options.kills + 1);
  const double step =
      (static_cast<double>(i) + random.uniform(0)) * fraction * static_cast<double>(options.steps);
  return {std::max<std::int64_t>(static_cast<std::int64_t>(step), 1),
          random.uniform(1) * fraction / 2 * seconds};
}

struct ResumeSession {
  int threads;
  std::int64_t from, to;  ///< steps of the newest checkpoints at its begin and end
  int exit_code;

  bool killed() const { return exit_code == 128 + SIGKILL; }
};

/// `qkv resume` until the end of the run or its kill.
ResumeSession resume_in_child(const RunFolder& folder, const fs::path& log, int threads,
                              const std::optional<Kill>& kill, const StopSignal& stop) {
  const std::int64_t from = folder.newest_step();
  ChildProcess child({"resume", folder.path(), "--threads", std::to_string(threads)}, log);
  std::optional<Clock::time_point> reached;
  while (!child.exit_code() && !stop.received()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!kill) continue;
    if (!reached && folder.newest_step() >= kill->step) reached = Clock::now();
    if (reached && Clock::now() - *reached >= std::chrono::duration<double>(kill->delay)) break;
  }
  const int exit_code = child.kill();
  return {threads, from, folder.newest_step(), exit_code};
}

std::string last_line(const fs::path& log) {
  std::ifstream stream(log);
  std::string last;
  for (std::string line; std::getline(stream, line);) last = line;
  return last;
}

/// Trains by `qkv resume` alone, which starts a run that has its config only; every process but the
/// last is killed. Throws Error when one fails.
std::vector<ResumeSession> train_with_kills(const Config& config, const RunFolder& folder,
                                            const VerifyResumeOptions& options, double seconds,
                                            const StopSignal& stop) {
  folder.create();
  write_durably(folder.config(), to_toml(portable(config, folder.path())));
  const fs::path log = folder.path().parent_path() / "log";
  std::vector<ResumeSession> sessions;
  for (Index i = 0; i <= options.kills && !stop.received(); ++i) {
    const int threads = 2 + static_cast<int>(i % 3);
    print_note(fmt::format("killed and resumed: process {} of {}, {} threads, from step {}\n",
                           i + 1, options.kills + 1, threads, folder.newest_step()));
    std::optional<Kill> kill;
    if (i < options.kills) kill = kill_of(i, options, seconds);
    const ResumeSession& session =
        sessions.emplace_back(resume_in_child(folder, log, threads, kill, stop));
    if (session.exit_code == 0) break;
    require<Error>(stop.received() || (kill && session.killed()),
                   "resumed at step {} with {} threads, the run failed with exit code {}: {}",
                   session.from, threads, session.exit_code, last_line(log));
  }
  return sessions;
}

struct Compared {
  std::string what, contents;
  std::optional<Difference> difference;
};

Index elements_of(const std::map<std::string, Tensor>& tensors) {
  Index count = 0;
  for (const auto& [path, tensor] : tensors) count += tensor.size();
  return count;
}

Compared compared_checkpoints(std::string_view which, const fs::path& expected,
                              const fs::path& found) {
  const Checkpoint checkpoint = read_checkpoint(expected);
  return {fmt::format("{} checkpoint, step {}", which, checkpoint.step),
          fmt::format("{} parameters, {} of optimizer state", elements_of(checkpoint.model),
                      elements_of(checkpoint.optimizer)),
          first_difference(checkpoint, read_checkpoint(found))};
}

/// The evaluations of a run: those of its test split, or the others.
std::vector<MetricsEvent> events_of(const RunFolder& folder, bool test) {
  auto events = read_metrics(folder.metrics()).events;
  std::erase_if(events, [&](const MetricsEvent& event) {
    return (event.split == to_string(Split::test)) != test;
  });
  return events;
}

std::vector<Compared> compared_runs(const RunFolder& expected, const RunFolder& found) {
  const auto evaluations = events_of(expected, false), test = events_of(expected, true);
  return {
      compared_checkpoints("last", expected.last(), found.last()),
      compared_checkpoints("best", expected.best(), found.best()),
      {"metrics.jsonl", fmt::format("{} evaluations, without times", evaluations.size()),
       first_difference(evaluations, events_of(found, false))},
      {"test result",
       test.empty() ? "no test data" : fmt::format("loss {:.4f}", test.back().loss.value_or(NAN)),
       first_difference(test, events_of(found, true))}};
}

void add_sessions(Document& document, const std::vector<ResumeSession>& sessions) {
  Json& list = document.data["processes"] = Json::array();
  Cells rows = {{"process", "threads", "from step", "to checkpoint", "end"}};
  for (const ResumeSession& session : sessions) {
    list.push_back(object({{"threads", session.threads},
                           {"from_step", session.from},
                           {"to_step", session.to},
                           {"killed", session.killed()}}));
    rows.push_back({std::to_string(rows.size()), std::to_string(session.threads),
                    std::to_string(session.from), std::to_string(session.to),
                    session.killed() ? "killed" : "finished"});
  }
  document.add_table(std::move(rows));
}

void add_comparison(Document& document, const std::vector<Compared>& all) {
  Json list = Json::array(), differing = Json::array();
  Cells rows = {{"compared", "contents", "bits"}};
  for (const auto& [what, contents, difference] : all) {
    list.push_back(object({{"what", what}, {"contents", contents}, {"equal", !difference}}));
    rows.push_back({what, contents, difference ? "DIFFER" : "equal"});
    if (!difference) continue;
    list.back()["difference"] = object({{"place", difference->place},
                                        {"uninterrupted", difference->expected},
                                        {"resumed", difference->found}});
    differing.push_back(list.back());
  }
  document.data["compared"] = list;
  document.data["equal"] = differing.empty();
  document.exit_code = differing.empty() ? 0 : 1;
  document.add_table(std::move(rows));
  if (differing.empty())
    document.add_text("\nevery bit agrees\n");
  else
    document.add_table(table_of(differing, {{"first difference of", "/what"},
                                            {"at", "/difference/place"},
                                            {"uninterrupted", "/difference/uninterrupted"},
                                            {"resumed", "/difference/resumed"}}));
}

Document stopped_by(int signal) {
  Document document;
  document.add_note("stopped: nothing was compared");
  document.exit_code = 128 + signal;
  return document;
}

Document verify_resume(const VerifyResumeOptions& options) {
  StopSignal stop;
  StopQuestion question(stop);
  question.ask();  // from the start on, as the folder is to be removed
  const Config config = short_run(read_config(options.config, {}).base, options.steps);
  const TemporaryFolder temporary;
  const RunFolder whole(temporary.path() / "whole"), killed(temporary.path() / "killed");
  const Outcome outcome = train_uninterrupted(config, whole, stop);
  if (outcome.signal) return stopped_by(outcome.signal);

  const auto sessions = train_with_kills(config, killed, options, outcome.seconds, stop);
  if (const int signal = stop.received()) return stopped_by(signal);
  require<Error>(sessions.size() > 1,
                 "the run of {} steps ended before it could be killed; take more with --steps",
                 options.steps);
  Document document;
  document.data =
      object({{"steps", options.steps}, {"seed", options.seed}, {"kills", sessions.size() - 1}});
  add_sessions(document, sessions);
  add_comparison(document, compared_runs(whole, killed));
  return document;
}

}  // namespace

Command verify_resume_command() {
  const auto o = std::make_shared<VerifyResumeOptions>();
  return {.name = "verify-resume",
          .summary = "Train a config twice, once killed and resumed, and compare every bit",
          .options = {config_argument(o->config),
                      {"--steps", &o->steps, "Steps of each run [50]", from_to(10, 1'000'000)},
                      {"--kills", &o->kills, "SIGKILLs of the second run [3]", from_to(1, 1000)},
                      {"--seed", &o->seed, "Seed of their moments [1]", not_negative}},
          .footer =
              "The first run trains straight through on 1 thread, the second in processes on\n"
              "2 to 4 threads, of which all but the last are killed at random moments. Both are\n"
              "in a temporary folder ($TMPDIR, else /tmp), which is removed. Exit code 1 when\n"
              "parameters, optimizer state, metrics, the best checkpoint or the test result\n"
              "differ.\n",
          .run = [o](const Stream&) { return verify_resume(*o); }};
}

}  // namespace qkv::commands
