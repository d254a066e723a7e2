#include "train/loop/trainer.h"

#include <doctest/doctest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "core/joining_thread.h"
#include "core/parallel.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/loop/session.h"
#include "train/loop/step.h"
#include "train/run/run.h"

namespace qkv::trainer_test {

namespace {

using Json = nlohmann::json;

/// A classifier that sees all examples in each step and is evaluated after each.
Config config_of(const TempDir& dir) {
  Config config = tiny_config(TaskKind::classify, dir.write("train.tsv", labelled("yes", "no")), 4);
  config.model.feed_forward = 8;
  config.optimizer.kind = OptimizerKind::sgd;
  config.train.steps = 6;
  config.train.batch = 8;
  config.train.eval_every = 1;
  config.train.checkpoint_every = 1;
  config.train.keep = 100;
  return config;
}

/// A finished run and what it left behind.
struct Finished {
  Finished(const Config& config, const TempDir& dir)
      : folder(dir.path() / "run"), run(start_run(config)) {
    folder.create();
    Callback callback;
    train(run, folder, callback);
    std::ifstream lines(folder.metrics());
    for (std::string line; std::getline(lines, line);) events.push_back(Json::parse(line));
  }

  /// The events of a split, in order.
  std::vector<Json> of(const std::string& split) const {
    std::vector<Json> found;
    std::ranges::copy_if(events, std::back_inserter(found),
                         [&](const Json& event) { return event["split"] == split; });
    return found;
  }

  RunFolder folder;
  Run run;
  std::vector<Json> events;
};

Evaluation evaluated(const std::filesystem::path& checkpoint, const std::string& data) {
  const LoadedModel model = load_model(checkpoint);
  return model.task->evaluate(*model.network, std::filesystem::path(data));
}

void check_same(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [path, value] : a) {
    CAPTURE(path);
    CHECK(value.values() == b.at(path).values());
  }
}

}  // namespace

TEST_CASE("runs side by side on threads of their own are the runs that they are alone") {
  const TempDir alone;
  const std::string expected = Finished(config_of(alone), alone).run.checkpoint({}).metrics;
  set_threads(1);
  std::array<std::string, 4> metrics;
  {
    std::vector<JoiningThread> threads;
    for (std::string& mine : metrics)
      threads.emplace_back([&mine] {
        const TempDir dir;
        mine = Finished(config_of(dir), dir).run.checkpoint({}).metrics;
      });
  }
  set_threads(2);
  for (const std::string& mine : metrics) CHECK(mine == expected);
}

TEST_CASE("training is a plain loop: gradients, clipping, rate, update, average") {
  const TempDir dir;
  Config config = config_of(dir);
  config.optimizer = {.kind = OptimizerKind::adam, .lr = 0.05};
  config.schedule = {.kind = ScheduleKind::linear, .warmup = 2, .floor = 0.5};
  config.train.batch = 3;
  config.train.clip_value = 0.1;
  config.train.clip = 0.15;
  config.train.ema = 0.5;
  const Finished finished(config, dir);

  Run run = start_run(config);
  const auto optimizer = make_optimizer(config.optimizer);
  MovingAverage average(0.5);
  Stepper stepper(run);
  // Half of the rate in the first step, all of it in the second and third, then down to a half.
  const std::array rates = {0.025, 0.05, 0.05, 0.05 * 0.875, 0.05 * 0.75, 0.05 * 0.625};
  bool clipped_value = false, clipped_norm = false;
  std::vector<double> losses;
  for (; run.step < 6; ++run.step) {
    StepGradients now = stepper.gradients();
    losses.push_back(now.loss);
    const double before = now.gradients.norm();
    now.gradients.clamp(0.1);
    const double norm = now.gradients.norm();
    clipped_value |= norm < before;
    clipped_norm |= norm > 0.15;
    if (norm > 0.15) now.gradients *= 0.15 / norm;
    optimizer->step(run.parameters, now.gradients, rates[static_cast<std::size_t>(run.step)],
                    run.step);
    average.update(run.parameters);
  }
  REQUIRE(clipped_value);
  REQUIRE(clipped_norm);

  const Checkpoint last = read_checkpoint(finished.folder.last());
  check_same(last.model, average.values());
  for (const auto& [path, parameter] : run.parameters) {
    CAPTURE(path);
    CHECK(last.optimizer.at("live." + path).values() == parameter->value().values());
  }
  for (const auto& [path, value] : optimizer->state()) {
    CAPTURE(path);
    CHECK(last.optimizer.at(path).values() == value.values());
  }
  const auto events = finished.of("train");
  REQUIRE(events.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(events[i]["loss"] == losses[i]);
}

TEST_CASE("the training loss of an evaluation is the mean over the steps since the last one") {
  const TempDir dir;
  Config config = config_of(dir);
  const auto each = Finished(config, dir).of("train");
  const TempDir other;
  config.train.eval_every = 4;
  const auto some = Finished(config, other).of("train");
  const auto mean = [&](std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += each[i]["loss"].get<double>();
    return sum / static_cast<double>(end - begin);
  };
  REQUIRE(some.size() == 2);
  CHECK(some[0]["loss"].get<double>() == doctest::Approx(mean(0, 4)));
  CHECK(some[1]["loss"].get<double>() == doctest::Approx(mean(4, 6)));
}

TEST_CASE("the average of the weights is what is evaluated and what a checkpoint holds") {
  const TempDir dir;
  Config config = config_of(dir);
  config.task.valid = config.task.test = config.task.train;
  config.optimizer.lr = 0.3;
  config.train.ema = 0.9;
  const Finished finished(config, dir);
  const auto events = finished.of("valid");
  REQUIRE(events.size() == 6);
  for (const Json& event : events) {
    const auto file = finished.folder.checkpoint(event["step"]);
    CHECK(evaluated(file, config.task.valid).loss == event["loss"]);
  }
  CHECK(finished.of("test").at(0)["loss"] ==
        evaluated(finished.folder.best(), config.task.test).loss);
}

TEST_CASE("what is tested and used is the best checkpoint, not the last") {
  const TempDir dir;
  Config config = config_of(dir);
  config.optimizer.lr = 0.3;
  // The more it learns, the worse it does on examples with swapped labels.
  config.task.valid = dir.write("valid.tsv", labelled("no", "yes")).string();
  config.task.test = dir.write("test.tsv", labelled("no", "yes")).string();
  const Finished finished(config, dir);
  const Checkpoint best = read_checkpoint(finished.folder.best());
  REQUIRE(best.step < 6);
  check_same(best.model, read_checkpoint(finished.folder.checkpoint(best.step)).model);

  const Evaluation expected = evaluated(finished.folder.best(), config.task.test);
  REQUIRE(expected.loss < evaluated(finished.folder.last(), config.task.test).loss);
  CHECK(evaluated(finished.folder.path(), config.task.test).loss == expected.loss);
  CHECK(finished.events.back()["split"] == "test");
  CHECK(finished.events.back()["step"] == best.step);
  CHECK(finished.events.back()["loss"] == expected.loss);
  for (const auto& [path, parameter] : finished.run.parameters)
    CHECK(parameter->value().values() == best.model.at(path).values());
}

TEST_CASE("of evaluations with equal scores the one with the least loss is the best") {
  // Each text has both labels, so that half of the answers are right, whatever they are.
  const std::string undecided = labelled("yes", "no") + labelled("no", "yes");
  for (const bool learns : {true, false}) {
    CAPTURE(learns);
    const TempDir dir;
    Config config = config_of(dir);
    config.task.valid = dir.write("valid.tsv", undecided).string();
    // Learning one of the labels raises the loss, small steps towards neither lower it.
    config.optimizer.lr = learns ? 0.3 : 0.01;
    config.train.batch = learns ? 8 : 16;
    if (!learns) dir.write("train.tsv", undecided);
    const Finished finished(config, dir);
    const auto events = finished.of("valid");
    std::size_t least = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
      REQUIRE(events[i]["accuracy"] == 0.5);
      if (events[i]["loss"] < events[least]["loss"]) least = i;
    }
    REQUIRE((least < 5) == learns);
    CHECK(read_checkpoint(finished.folder.best()).step == events[least]["step"]);
  }
}

TEST_CASE("train.epochs counts passes over the training examples in place of steps") {
  const TempDir dir;
  Config config = config_of(dir);
  config.train.batch = 3;
  config.train.epochs = 2;  // of 8 examples: 16 / 3 steps, the last of which begins the third
  CHECK(Finished(config, dir).run.step == 6);
  config.train.accumulate = 2;
  CHECK(start_run(config).last_step == 3);
  config.train.epochs = 0.01;
  CHECK(start_run(config).last_step == 1);
  config.train.epochs = 0;
  CHECK(start_run(config).last_step == config.train.steps);
  std::string hundred;
  for (int i = 0; i < 100; ++i) hundred += fmt::format("{}\tgood day\n", i % 2 ? "yes" : "no");
  config.task.train = dir.write("hundred.tsv", hundred).string();
  config.train.accumulate = 1;
  // In binary 1.1 * 100, 0.55 * 100, 0.07 * 100 and 2.2 * 100 are more than the whole numbers.
  for (const auto& [epochs, batch, steps] : {std::tuple<double, Index, Index>{1.1, 1, 110},
                                             {0.55, 1, 55},
                                             {0.07, 1, 7},
                                             {1.1, 5, 22},
                                             {2.2, 10, 22},
                                             {1.101, 1, 111},
                                             {1, 100, 1},
                                             {1e6, 1, 100'000'000}}) {
    CAPTURE(epochs);
    config.train.epochs = epochs;
    config.train.batch = batch;
    CHECK(start_run(config).last_step == steps);
  }
}

TEST_CASE("train.patience ends a run after so many evaluations without a better checkpoint") {
  const TempDir dir;
  Config config = config_of(dir);
  // Training makes the score of the validation data worse from the first step on.
  config.task.valid = dir.write("valid.tsv", labelled("no", "yes")).string();
  config.optimizer.lr = 0.5;
  config.train.steps = 60;
  config.train.eval_every = 2;
  config.train.checkpoint_every = 7;
  config.train.patience = 3;
  Finished finished(config, dir);
  const std::int64_t best = read_checkpoint(finished.folder.best()).step;
  CHECK(read_checkpoint(finished.folder.last()).step == best + 3 * 2);
  REQUIRE(best + 3 * 2 < 60);

  Callback callback;
  const auto [checkpoint, file] = newest_valid_checkpoint(finished.folder, callback);
  Run again = restore_run(config, checkpoint, file);
  CHECK(is_finished(again));
  resume(again, finished.folder, callback);
  CHECK(read_checkpoint(finished.folder.last()).step == best + 3 * 2);
  config.train.patience = 4;
  Run longer = restore_run(config, checkpoint, file);
  resume(longer, finished.folder, callback);
  CHECK(read_checkpoint(finished.folder.last()).step == best + 4 * 2);
}

TEST_CASE("train.patience needs validation data, and train.select a metric of the task") {
  const TempDir dir;
  Config config = config_of(dir);
  config.train.patience = 1;
  CHECK(error_of<UserError>([&] {
          start_run(config);
        }).starts_with("train.patience needs validation data"));
  config.train.patience = 0;
  config.train.select = "span_f1";
  CHECK(error_of<UserError>([&] { start_run(config); }) ==
        "train.select \"span_f1\" is no metric of this task; it has: loss, accuracy, macro_f1, "
        "log_loss, calibration_error");
}

namespace {

struct Messages : Callback {
  void on_message(const std::string& line) override { lines.push_back(line); }
  std::ptrdiff_t count(const std::string& text) const {
    return std::ranges::count_if(
        lines, [&](const std::string& line) { return line.find(text) != line.npos; });
  }
  std::vector<std::string> lines;
};

/// Rows of the embedding so large that their sum overflows: a batch with this word has no finite
/// loss, others have.
void break_word(Run& run, const std::string& word) {
  for (const auto& [path, parameter] : run.parameters) {
    if (parameter->role() != Role::embedding) continue;
    const Index width = parameter->shape()[1];
    auto row = parameter->mutable_data<float>().subspan(
        static_cast<std::size_t>(run.task->vocabulary().id(word) * width),
        static_cast<std::size_t>(width));
    std::ranges::fill(row, 3e38F);
  }
}

void resume_with(const RunFolder& folder, double rate, std::int64_t steps) {
  Callback callback;
  const auto [checkpoint, file] = newest_valid_checkpoint(folder, callback);
  Config config = config_of(checkpoint, file);
  config.optimizer.lr = rate;
  config.train.steps = steps;
  Run run = restore_run(config, checkpoint, file);
  resume(run, folder, callback);
}

}  // namespace

TEST_CASE("a run that diverged resumes with a lower rate from its last finite checkpoint") {
  for (const OptimizerKind kind :
       {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adagrad, OptimizerKind::muon})
    for (const double rate : {1e10, 1e20, 1e30, 1e38}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(rate);
      const TempDir dir;
      Config config = config_of(dir);
      config.optimizer.kind = kind;
      config.train.steps = 2;
      config.train.clip = 0;
      config.train.keep = 1;
      const Finished finished(config, dir);
      const std::string error = error_of<Error>([&] { resume_with(finished.folder, rate, 2000); });
      CHECK(error.find("; lower optimizer.lr or train.clip and resume") != error.npos);
      Callback callback;
      const auto newest = newest_valid_checkpoint(finished.folder, callback).first;
      for (const auto& file : finished.folder.checkpoints())
        CHECK(non_finite_tensor(read_checkpoint(file)).empty());
      resume_with(finished.folder, 1e-3, newest.step + 3);
      CHECK(read_checkpoint(finished.folder.last()).step == newest.step + 3);
    }
}

TEST_CASE("finite parameters without a finite loss are not saved, not even after the last step") {
  const TempDir dir;
  Config config = config_of(dir);
  config.train.steps = 1;
  config.train.clip = 0;
  config.optimizer.lr = 1e38;
  Run run = start_run(config);
  const RunFolder folder(dir.path() / "run");
  Callback callback;
  const std::string error = error_of<Error>([&] { start(run, folder, callback); });
  CHECK(error.starts_with("step 1: "));
  CHECK(error.find("; lower optimizer.lr or train.clip and resume") != error.npos);
  CHECK(!folder.holds_checkpoints());
}

TEST_CASE("a loss that is finite and beyond return ends the run before it is saved") {
  const TempDir dir;
  Config config = config_of(dir);
  config.train.clip = 0;
  config.optimizer.lr = 1e10;
  Run run = start_run(config);
  const RunFolder folder(dir.path() / "run");
  Callback callback;
  const std::string error = error_of<Error>([&] { start(run, folder, callback); });
  CHECK(error.find(": the loss has exploded (loss ") != error.npos);
  CHECK(!folder.holds_checkpoints());
}

TEST_CASE("a loss that is large from the start is no explosion") {
  const TempDir dir;
  Config config = config_of(dir);
  config.train.steps = 4;
  Run run = start_run(config);
  for (float& weight : run.network->head->weight.mutable_data<float>()) weight *= 1e12F;
  const RunFolder folder(dir.path() / "run");
  Callback callback;
  start(run, folder, callback);
  CHECK(folder.holds_checkpoints());
}

TEST_CASE("train.on_divergence decides whether an update that is not finite is left out") {
  const TempDir dir;
  Config config = config_of(dir);
  config.train.batch = 1;
  config.train.steps = 16;
  config.train.eval_every = 16;
  Run stopping = start_run(config);
  break_word(stopping, "year");
  Callback callback;
  CHECK(error_of<Error>([&] {
          start(stopping, RunFolder(dir.path() / "stop"), callback);
        }).find("is not finite") != std::string::npos);

  config.train.on_divergence = OnDivergence::skip;
  Run skipping = start_run(config);
  break_word(skipping, "year");
  const RunFolder folder(dir.path() / "skip");
  Messages messages;
  start(skipping, folder, messages);
  // Two of the eight examples have the word, and each comes twice.
  CHECK(messages.count("is not finite; update left out, ") == 4);
  CHECK(messages.count("update left out, 4 so far") == 1);
  const Checkpoint last = read_valid_checkpoint(folder.last());
  CHECK(last.step == 16);
  CHECK(Json::parse(last.metrics)["loss"].is_number());
}

TEST_CASE("an update that is left out does not count as one of the optimizer's") {
  // At Adam's first update each element moves by the learning rate.
  const TempDir dir;
  Config config = config_of(dir);
  config.optimizer.kind = OptimizerKind::adam;
  config.optimizer.lr = 0.01;
  config.train.batch = 1;
  config.train.steps = config.train.eval_every = config.train.checkpoint_every = 2;
  config.train.on_divergence = OnDivergence::skip;
  const auto has_year = [&](std::int64_t step) {
    return BatchSampler(8, 1, config.seed).at(step)[0] >= 6;
  };
  while (!has_year(0) || has_year(1)) ++config.seed;
  Run run = start_run(config);
  break_word(run, "year");
  const RunFolder folder(dir.path() / "run");
  Callback callback;
  start(run, folder, callback);
  const Checkpoint last = read_checkpoint(folder.last());
  CHECK(last.step == 2);
  CHECK(last.progress.at("updates") == 1);
  for (const double bias : last.model.at("head.bias").values())
    CHECK(std::abs(bias) == doctest::Approx(0.01).epsilon(1e-4));
  CHECK(restore_run(config, last, "c.h5").updates == 1);
}

TEST_CASE("a run whose every update is left out ends with an error") {
  const TempDir dir;
  Config config = config_of(dir);
  config.train.on_divergence = OnDivergence::skip;
  Run run = start_run(config);
  break_word(run, "good");
  Callback callback;
  CHECK(error_of<Error>([&] {
          start(run, RunFolder(dir.path() / "run"), callback);
        }).starts_with("step 1: every update since the last evaluation was left out"));
}

TEST_CASE("a spike of the gradient norm is reported") {
  const TempDir dir;
  Config config = config_of(dir);
  // In each step the same examples, learned by and by, until the rate of a second session throws
  // the model far away.
  config.train.steps = 30;
  config.optimizer.lr = 0.5;
  const Finished finished(config, dir);
  Messages messages;
  const auto [checkpoint, file] = newest_valid_checkpoint(finished.folder, messages);
  config.train.steps = 60;
  config.train.clip = 0;
  Run run = restore_run(config, checkpoint, file);
  struct Push : Messages {
    explicit Push(Run& run) : run(run) {}
    void on_step(const StepReport& report) override {
      if (report.step != 55) return;
      for (const auto& [path, parameter] : run.parameters)
        if (parameter->role() == Role::head)
          for (float& value : parameter->mutable_data<float>()) value *= -1000;
    }
    Run& run;
  } push(run);
  resume(run, finished.folder, push);
  CHECK(push.count("step 55: the gradient norm ") == 1);
}

}  // namespace qkv::trainer_test
