#include "train/loop/session.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "core/parallel.h"
#include "tests/support/errors.h"
#include "tests/support/system_calls.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/metrics/metrics.h"
#include "train/run/run.h"

namespace qkv::session_test {
namespace fs = std::filesystem;

namespace {

/// A classifier that is evaluated and saved after each step. The validation data agree with the
/// training data, so that the last checkpoint is the best, or contradict them, so that it is an
/// early one.
Config config_of(const TempDir& dir, bool agree) {
  const std::string swapped = labelled("no", "yes");
  Config config = tiny_config(TaskKind::classify, dir.write("train.tsv", labelled("yes", "no")), 4);
  config.task.valid = dir.write("valid.tsv", agree ? labelled("yes", "no") : swapped).string();
  config.task.test = dir.write("test.tsv", swapped).string();
  config.model.width = 4;
  config.model.feed_forward = 4;
  config.optimizer.lr = 0.01;
  config.train.steps = 4;
  config.train.batch = 4;
  config.train.eval_every = 1;
  config.train.checkpoint_every = 1;
  config.train.keep = 1;
  return config;
}

struct Messages : Callback {
  void on_message(const std::string& line) override { all += line + "\n"; }
  bool contain(const std::string& text) const { return all.find(text) != all.npos; }
  std::string all;
};

/// Resumes as `qkv resume` does.
Outcome continued(const Config& config, const RunFolder& folder, Callback& callback) {
  if (!folder.holds_checkpoints()) {
    Run run = start_run(config);
    return start(run, folder, callback);
  }
  const auto [checkpoint, file] = newest_valid_checkpoint(folder, callback);
  Run run = restore_run(config, checkpoint, file);
  return resume(run, folder, callback);
}

Outcome continued(const Config& config, const RunFolder& folder) {
  Callback callback;
  return continued(config, folder, callback);
}

/// Continues a run in another process, and returns whether a call of the system killed it there.
bool killed_at(int call, const Config& config, const RunFolder& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    set_threads(1);  // the others do not exist in the child
    const SystemCalls calls(SystemCalls::Fault::kill, call);
    continued(config, folder);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status) == SystemCalls::killed;
}

std::vector<std::tuple<std::int64_t, std::string, double>> events_of(const RunFolder& folder) {
  const Metrics metrics = read_metrics(folder.metrics());
  CHECK(metrics.malformed.empty());
  std::vector<std::tuple<std::int64_t, std::string, double>> events;
  for (const MetricsEvent& event : metrics.events)
    events.emplace_back(event.step, event.split, event.loss.value());
  return events;
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), folder));
  std::ranges::sort(files);
  return files;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator(stream), {}};
}

/// The run that nothing interrupted: what every other must end as.
struct Whole {
  explicit Whole(const Config& config, const fs::path& path) : folder(path) {
    outcome = continued(config, folder);
  }
  void check_equal(const RunFolder& other, const Outcome& of_other) const {
    CHECK(files_in(other.path()) == files_in(folder.path()));
    CHECK(bytes_of(other.best()) == bytes_of(folder.best()));
    CHECK(bytes_of(other.last()) == bytes_of(folder.last()));
    CHECK(events_of(other) == events_of(folder));
    CHECK(of_other.test->loss == outcome.test->loss);
  }
  RunFolder folder;
  Outcome outcome;
};

/// The best checkpoint was saved before the last, and `keep` = 1 leaves no other beside it.
Whole early_best(const TempDir& dir, Config& config) {
  config = config_of(dir, false);
  Whole whole(config, dir.path() / "whole");
  REQUIRE(read_checkpoint(whole.folder.best()).step < 4);
  return whole;
}

/// Changes a checkpoint's file.
template <class Change>
void rewrite(const fs::path& file, Change change) {
  Checkpoint checkpoint = read_checkpoint(file);
  change(checkpoint);
  write_checkpoint(file, checkpoint);
}

}  // namespace

TEST_CASE("a run killed at any call of the system resumes to the same best, metrics and files") {
  for (const bool agree : {true, false}) {
    const TempDir dir;
    const Config config = config_of(dir, agree);
    const Whole whole(config, dir.path() / "whole");
    REQUIRE((read_checkpoint(whole.folder.best()).step == 4) == agree);
    const RunFolder folder(dir.path() / "killed");
    int points = 0;
    for (bool killed = true; killed; ++points) {
      CAPTURE(points);
      fs::remove_all(folder.path());
      killed = killed_at(points, config, folder);
      const SystemCalls unflushed(SystemCalls::Fault::error, -1);
      whole.check_equal(folder, continued(config, folder));
    }
    CHECK(points > 40);
  }
}

TEST_CASE("a run that any call of the system fails resumes to the same best, metrics and files") {
  for (const bool agree : {true, false}) {
    const TempDir dir;
    const Config config = config_of(dir, agree);
    const Whole whole(config, dir.path() / "whole");
    const RunFolder folder(dir.path() / "failed");
    int points = 0;
    for (bool reached = true; reached; ++points) {
      CAPTURE(points);
      fs::remove_all(folder.path());
      {
        const SystemCalls calls(SystemCalls::Fault::error, points);
        try {
          continued(config, folder);
        } catch (const FileError&) {
        }
        reached = calls.count() > points;
      }
      const SystemCalls unflushed(SystemCalls::Fault::error, -1);
      whole.check_equal(folder, continued(config, folder));
    }
    CHECK(points > 40);
  }
}

TEST_CASE("a repair that is killed at any call is finished by the next") {
  const TempDir dir;
  Config config;
  const Whole whole = early_best(dir, config);
  const RunFolder folder(dir.path() / "run");
  bool killed = true;
  for (int point = 0; killed; ++point) {
    CAPTURE(point);
    fs::remove_all(folder.path());
    fs::copy(whole.folder.path(), folder.path(), fs::copy_options::recursive);
    fs::remove(folder.best());
    fs::remove(folder.last());
    fs::copy_file(folder.checkpoint(4), folder.checkpoint(3));
    rewrite(folder.checkpoint(3), [](Checkpoint& checkpoint) { checkpoint.step = 3; });
    killed = killed_at(point, config, folder);
    const SystemCalls unflushed(SystemCalls::Fault::error, -1);
    whole.check_equal(folder, continued(config, folder));
  }
}

TEST_CASE("a stale best.h5 and last.h5 are remade from the step files, and so is a step file") {
  const TempDir dir;
  Config config;
  const Whole whole = early_best(dir, config);
  const RunFolder& folder = whole.folder;
  const std::int64_t best = read_checkpoint(folder.best()).step;
  const std::string best_bytes = bytes_of(folder.best());
  SUBCASE("stale") {
    for (const fs::path& name : {folder.best(), folder.last()}) {
      fs::remove(name);
      fs::copy_file(folder.checkpoint(name == folder.best() ? 4 : best), name);
    }
  }
  SUBCASE("missing") {
    fs::remove(folder.best());
    fs::remove(folder.last());
    CHECK(find_checkpoint(folder.path()) == folder.checkpoint(best));
  }
  SUBCASE("a step file removed") {
    fs::remove(folder.checkpoint(best));
  }
  SUBCASE("all step files removed") {
    fs::remove_all(folder.path() / "checkpoints");
  }
  const Outcome outcome = continued(config, folder);
  CHECK(bytes_of(folder.best()) == best_bytes);
  CHECK(bytes_of(folder.checkpoint(best)) == best_bytes);
  CHECK(read_checkpoint(folder.last()).step == 4);
  CHECK(outcome.test->loss == whole.outcome.test->loss);
  CHECK(folder.checkpoints().size() == 2);
}

TEST_CASE("where the best checkpoint is lost, the resumed one stands in, with a message") {
  const TempDir dir;
  Config config;
  const Whole whole = early_best(dir, config);
  const std::int64_t best = read_checkpoint(whole.folder.best()).step;
  fs::remove(whole.folder.checkpoint(best));
  fs::remove(whole.folder.best());
  config.train.steps = 6;
  Messages messages;
  continued(config, whole.folder, messages);
  CHECK(messages.contain(fmt::format(
      "the best checkpoint, of step {}, is lost; that of step 4 takes its place", best)));
  CHECK(read_checkpoint(whole.folder.best()).step > 4);
}

TEST_CASE("resume takes the newest checkpoint that is finite and has the step of its name") {
  const TempDir dir;
  Config config = config_of(dir, true);
  config.train.keep = 9;
  const Whole whole(config, dir.path() / "whole");
  const RunFolder& folder = whole.folder;
  fs::remove(folder.last());
  fs::remove(folder.best());
  fs::copy_file(folder.checkpoint(1), folder.checkpoint(99));
  rewrite(folder.checkpoint(4), [](Checkpoint& checkpoint) {
    checkpoint.model.begin()->second =
        Tensor::full(checkpoint.model.begin()->second.shape(), std::nan(""));
  });
  rewrite(folder.checkpoint(3), [](Checkpoint& checkpoint) {
    checkpoint.optimizer.begin()->second =
        Tensor::full(checkpoint.optimizer.begin()->second.shape(), HUGE_VAL);
  });
  Messages messages;
  CHECK(newest_valid_checkpoint(folder, messages).first.step == 2);
  CHECK(messages.contain("step-00000099.h5: holds the checkpoint of step 1"));
  CHECK(messages.contain("step-00000004.h5: "));
  CHECK(messages.contain("step-00000003.h5: first_moment."));
  CHECK(messages.contain("holds a value that is not finite; falling back"));
  continued(config, folder);
  CHECK(bytes_of(folder.last()) == bytes_of(folder.checkpoint(4)));
  CHECK(!fs::exists(folder.checkpoint(99)));
  CHECK(read_valid_checkpoint(folder.best()).step == 4);
}

TEST_CASE("lost and torn lines of the metrics come back from the checkpoint") {
  const TempDir dir;
  const Config config = config_of(dir, true);
  const Whole whole(config, dir.path() / "whole");
  const auto events = events_of(whole.folder);
  std::ofstream(whole.folder.metrics()) << R"({"step":1,"split":"train","loss":7})"
                                        << "\n{\"step\":\"x\"}\n[]\n{\"step\":2,\"spl";
  continued(config, whole.folder);
  CHECK(events_of(whole.folder) == events);
}

TEST_CASE("metrics that cannot be written are said once, stop nothing, and come back") {
  const TempDir dir;
  const Config config = config_of(dir, true);
  const Whole whole(config, dir.path() / "whole");
  const RunFolder folder(dir.path() / "run");
  folder.create();
  fs::create_directory(folder.metrics());
  Run run = start_run(config);
  Messages messages;
  CHECK(train(run, folder, messages).test->loss == whole.outcome.test->loss);
  const std::string first = folder.metrics().string() + ": cannot write: Is a directory";
  CHECK(messages.contain(first));
  CHECK(messages.all.find(first) == messages.all.rfind(first));
  fs::remove(folder.metrics());
  whole.check_equal(folder, continued(config, folder));
}

TEST_CASE("a run that ended before its first checkpoint leaves no metrics to the next") {
  const TempDir dir;
  const Config config = config_of(dir, true);
  const RunFolder folder(dir.path() / "run");
  folder.create();
  dir.write("run/metrics.jsonl", "{\"step\":1,\"split\":\"train\",\"loss\":7}\n{\"st");
  dir.write("run/config.toml", "");
  const Whole whole(config, dir.path() / "whole");
  continued(config, folder);
  CHECK(events_of(folder) == events_of(whole.folder));
}

TEST_CASE("the config in a run folder is the run's, also with probes about other variants") {
  const TempDir dir;
  Config config = config_of(dir, true);
  config.probes.push_back({.name = "claim",
                           .sentences = {"good day", "bad day"},
                           .word = "day",
                           .expect = "contextual_cosine < 2",
                           .variants = {"other"},
                           .broken_by = {},
                           .swap = {}});
  const RunFolder folder(dir.path() / "run");
  continued(config, folder);
  CHECK(config_of(folder) == config);
}

TEST_CASE("other training data are refused, and checkpoints without a hash are not checked") {
  const TempDir dir;
  Config config = config_of(dir, true);
  const Whole whole(config, dir.path() / "whole");
  const fs::path data = dir.write("train.tsv", labelled("no", "yes"));
  const std::string error = error_of<UserError>([&] { continued(config, whole.folder); });
  CHECK(error.find(fmt::format("the training data {} has changed", data.string())) != error.npos);
  fs::rename(data, dir.path() / "moved.tsv");
  dir.write("moved.tsv", labelled("yes", "no"));
  config.task.train = (dir.path() / "moved.tsv").string();
  continued(config, whole.folder);
  dir.write("moved.tsv", labelled("no", "yes"));
  rewrite(whole.folder.checkpoint(4), [](Checkpoint& checkpoint) { checkpoint.data_hash = ""; });
  continued(config, whole.folder);
}

TEST_CASE("other validation data are refused, as scores of them are compared with earlier ones") {
  const TempDir dir;
  const Config config = config_of(dir, true);
  const Whole whole(config, dir.path() / "whole");
  const fs::path data = dir.write("valid.tsv", labelled("no", "yes"));
  const std::string error = error_of<UserError>([&] { continued(config, whole.folder); });
  CHECK(error.find(fmt::format("the validation data {} has changed", data.string())) != error.npos);
  rewrite(whole.folder.checkpoint(4), [](Checkpoint& checkpoint) { checkpoint.valid_hash = ""; });
  continued(config, whole.folder);  // of an imported model
}

TEST_CASE("a run that was stopped between two checkpoints keeps those of an undisturbed one") {
  const TempDir dir;
  Config config = config_of(dir, true);
  config.train.steps = 10;
  config.train.eval_every = 10;
  config.train.checkpoint_every = 2;
  config.train.keep = 3;
  const Whole whole(config, dir.path() / "whole");
  REQUIRE(whole.folder.checkpoints().size() == 3);
  struct StopAt : Callback {
    explicit StopAt(std::int64_t stop) : at(stop) {}
    void on_step(const StepReport& report) override { step = report.step; }
    int stop_signal() override { return step == at ? 15 : 0; }
    std::int64_t at, step = 0;
  };
  const RunFolder folder(dir.path() / "stopped");
  for (const std::int64_t at : {5, 7}) {
    StopAt stop(at);
    REQUIRE(continued(config, folder, stop).signal == 15);
  }
  whole.check_equal(folder, continued(config, folder));
}

TEST_CASE("temporary files of ended processes are removed, those of others stay") {
  const TempDir dir;
  const Config config = config_of(dir, true);
  const Whole whole(config, dir.path() / "whole");
  const auto files = files_in(whole.folder.path());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  for (const char* name : {"last.h5", "report.html", "checkpoints/step-00000007.h5"})
    for (const pid_t process : {child, ::getpid()})
      dir.write(fmt::format("whole/{}.tmp.{}.0", name, process), "");
  const std::string parents = fmt::format("report.html.tmp.{}.0", ::getppid());
  dir.write("whole/" + parents, "");
  const std::string own = fmt::format("notes.tmp.{}.0", child);  // not a file of runs
  for (const std::string& name : {std::string("last.h5.tmp.x.0"), own})
    dir.write("whole/" + name, "");
  continued(config, whole.folder);
  std::vector<std::string> left = files_in(whole.folder.path());
  for (const std::string& name : {parents, std::string("last.h5.tmp.x.0"), own})
    CHECK(std::erase(left, name) == 1);
  CHECK(left == files);
}

}  // namespace qkv::session_test
