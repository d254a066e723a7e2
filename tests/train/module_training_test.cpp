#include "train/loop/module_training.h"

#include <doctest/doctest.h>

#include <atomic>
#include <fstream>
#include <numeric>

#include "core/parallel.h"
#include "datasets/batch.h"
#include "layers/linear.h"
#include "optim/optimizer.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/loop/session.h"
#include "train/run/run.h"

namespace qkv::module_training_test {
namespace fs = std::filesystem;

namespace {

struct Mlp : Module {
  explicit Mlp(Index width = 8) : hidden(3, width), out(width, 1) { initialise(*this, 1); }
  Tensor operator()(const Tensor& x, Context& context) const {
    return out(context.dropped(tanh(hidden(x)), 0.2));
  }
  void visit(ModuleVisitor& visit) override { visit("hidden", hidden)("out", out); }

  Linear hidden, out;
};

/// Inputs [rows, 3] and targets [rows, 1] of examples.
std::pair<Tensor, Tensor> rows_of(std::span<const Index> examples) {
  std::vector<double> x, y;
  for (const Index i : examples) {
    const double a = static_cast<double>(i % 7) / 7, b = static_cast<double>(i % 5) / 5;
    x.insert(x.end(), {a, b, 1.0});
    y.push_back(a - b);
  }
  const Index rows = std::ssize(examples);
  return {Tensor::from(x, {rows, 3}), Tensor::from(y, {rows, 1})};
}

Problem problem_of(const Mlp& model) {
  return {.train = 70,
          .valid = 20,
          .test = 20,
          .loss = [&model](Split, std::span<const Index> examples, Context& context) {
            const auto [x, y] = rows_of(examples);
            return BatchLoss{mean_squared_error(model(x, context), y), std::ssize(examples)};
          }};
}

TrainerOptions options() {
  TrainerOptions options{.name = "rows", .seed = 3};
  options.optimizer.lr = 0.01;
  options.train = {
      .steps = 12, .batch = 16, .ema = 0.5, .eval_every = 4, .checkpoint_every = 3, .keep = 2};
  return options;
}

Outcome trained(Mlp& model, const fs::path& folder) {
  return train(model, problem_of(model), options(), folder);
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// Asks to stop after a step.
struct StopAfter : Callback {
  explicit StopAfter(std::int64_t step) : step(step) {}
  void on_step(const StepReport& report) override { last = report.step; }
  int stop_signal() override { return last == step ? 15 : 0; }

  std::int64_t step, last = 0;
};

}  // namespace

TEST_CASE(
    "an own module's training that stops after any step ends with the bits of one that does not") {
  const TempDir dir;
  Mlp whole;
  const Outcome expected = trained(whole, dir.path() / "whole" / "rows");
  for (std::int64_t step = 1; step < options().train.steps; ++step) {
    CAPTURE(step);
    const fs::path folder = dir.path() / std::to_string(step) / "rows";
    Mlp first;
    StopAfter stop(step);
    CHECK(train(first, problem_of(first), options(), folder, stop).signal == 15);
    Mlp second;
    const Outcome outcome = trained(second, folder);
    CHECK(outcome.test->loss == expected.test->loss);
    for (const char* name : {"last.h5", "best.h5"})
      CHECK(bytes_of(folder / name) == bytes_of(dir.path() / "whole" / "rows" / name));
    CHECK(second.out.weight.value().values() == whole.out.weight.value().values());
  }
}

TEST_CASE("an own module's training has equal bits on any number of threads") {
  const int before = threads();
  const TempDir dir;
  std::vector<std::string> files;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    Mlp model;
    const fs::path folder = dir.path() / std::to_string(count) / "rows";
    trained(model, folder);
    files.push_back(bytes_of(folder / "last.h5"));
  }
  set_threads(before);
  CHECK(files[1] == files[0]);
  CHECK(files[2] == files[0]);
}

TEST_CASE("an own module is trained as by a loop over the same batches") {
  const TempDir dir;
  TrainerOptions plain = options();
  plain.train.ema = 0;
  plain.train.clip = 0;
  const auto loss_without_dropout = [](const Mlp& model, std::span<const Index> examples) {
    Context evaluation;
    const auto [x, y] = rows_of(examples);
    return mean_squared_error(model(x, evaluation), y);
  };
  Mlp model;
  Problem problem = problem_of(model);
  problem.valid = 0;
  problem.loss = [&](Split, std::span<const Index> examples, Context&) {
    return BatchLoss{loss_without_dropout(model, examples), std::ssize(examples)};
  };
  const Outcome outcome = train(model, problem, plain, dir.path() / "rows");
  std::vector<Index> tested(static_cast<std::size_t>(problem.test));
  std::iota(tested.begin(), tested.end(), Index{0});
  CHECK(outcome.test->loss == doctest::Approx(loss_without_dropout(model, tested).item()));
  Mlp looped;
  const auto all = parameters(looped);
  const auto optimizer = make_optimizer(plain.optimizer);
  const BatchSampler batches(problem.train, plain.train.batch, plain.seed);
  for (std::int64_t step = 0; step < plain.train.steps; ++step)
    optimizer->step(all, gradients_of(loss_without_dropout(looped, batches.at(step))),
                    plain.optimizer.lr, step);
  const auto expected = state_of(looped);
  for (const auto& [path, value] : state_of(model)) {
    CAPTURE(path);
    const auto found = value.values(), wanted = expected.at(path).values();
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(1e-5));
  }
}

TEST_CASE("a finished training of an own module is not trained again") {
  const TempDir dir;
  Mlp first, second;
  const Outcome before = trained(first, dir.path() / "rows");
  Problem problem = problem_of(second);
  std::atomic<int> training_losses = 0;
  problem.loss = [&, loss = problem.loss](Split split, std::span<const Index> examples,
                                          Context& context) {
    training_losses += split == Split::train ? 1 : 0;
    return loss(split, examples, context);
  };
  const Outcome after = train(second, problem, options(), dir.path() / "rows");
  CHECK(training_losses == 0);
  CHECK(after.test->loss == before.test->loss);
}

TEST_CASE("the default evaluation of a problem is the mean by the weights of its batches") {
  const TempDir dir;
  Mlp model;
  Problem problem = problem_of(model);
  problem.valid = 0;
  problem.loss = [](Split, std::span<const Index> examples, Context&) {
    const double loss = examples.front() == 0 ? 1 : 5;
    return BatchLoss{Tensor::scalar(loss), std::ssize(examples),
                     examples.front() == 0 ? 0.03 : 0.01};
  };
  CHECK(train(model, problem, options(), dir.path() / "rows").test->loss == doctest::Approx(2));
}

TEST_CASE("a folder of an own module's training may be renamed") {
  const TempDir dir;
  Mlp first, second;
  TrainerOptions unnamed = options();
  unnamed.name = "";
  const Outcome before = train(first, problem_of(first), unnamed, dir.path() / "a");
  fs::rename(dir.path() / "a", dir.path() / "b");
  CHECK(train(second, problem_of(second), unnamed, dir.path() / "b").test->loss ==
        before.test->loss);
}

TEST_CASE("the problem's own evaluation selects the best checkpoint") {
  const TempDir dir;
  Mlp model;
  Problem problem = problem_of(model);
  problem.test = 0;
  int evaluations = 0;
  problem.evaluate = [&](Split) {
    Evaluation evaluation;
    evaluation.count = problem.valid;
    evaluation.score = ++evaluations == 2 ? 1 : 0;  // after step 8
    evaluation.metrics = {{"hits", evaluation.score}};
    return evaluation;
  };
  train(model, problem, options(), dir.path() / "rows");
  CHECK(read_checkpoint(dir.path() / "rows" / "best.h5").step == 8);
}

TEST_CASE("an own module's training that continues with other options says which") {
  struct Messages : Callback {
    std::string all;
    void on_message(const std::string& message) override { all += message; }
  } messages;
  const TempDir dir;
  const fs::path folder = dir.path() / "rows";
  Mlp model;
  trained(model, folder);
  TrainerOptions changed = options();
  changed.optimizer.lr = 0.02;
  changed.train.steps = 14;
  train(model, problem_of(model), changed, folder, messages);
  CHECK(messages.all.find("optimizer.lr = 0.01 (now 0.02)") != messages.all.npos);
  CHECK(messages.all.find("train.steps = 12 (now 14)") != messages.all.npos);
  CHECK(read_checkpoint(folder / "last.h5").step == 14);
}

TEST_CASE("what an own module's training cannot continue or honour is refused") {
  const TempDir dir;
  const fs::path folder = dir.path() / "rows";
  Mlp model;
  trained(model, folder);
  const auto refusal = [&](Mlp& module, const Problem& problem, const TrainerOptions& changed,
                           const fs::path& where) {
    return error_of<Error>([&] { train(module, problem, changed, where); });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != text.npos);
  };
  Problem fewer = problem_of(model);
  fewer.train = 60;
  has(refusal(model, fewer, options(), folder), "the splits have other sizes");
  TrainerOptions changed = options();
  changed.optimizer.kind = OptimizerKind::sgd;
  has(refusal(model, problem_of(model), changed, folder), "optimizer.kind");
  Mlp wider(9);
  has(refusal(wider, problem_of(wider), options(), folder), "does not hold this module");
  for (const auto& change : {+[](TrainerOptions& o) { o.train.init = "run"; },
                             +[](TrainerOptions& o) { o.train.memory = "1GB"; },
                             +[](TrainerOptions& o) { o.train.tensorboard = true; }}) {
    TrainerOptions refused = options();
    change(refused);
    has(refusal(model, problem_of(model), refused, dir.path() / "new"), "options of a config");
  }
  TrainerOptions wrong = options();
  wrong.train.steps = -1;
  has(refusal(model, problem_of(model), wrong, dir.path() / "new"), "train.steps");
  wrong = options();
  wrong.train.freeze = {"decoder"};
  has(refusal(model, problem_of(model), wrong, dir.path() / "new"), "\"decoder\" is no part");
  has(refusal(model, {.train = 3, .loss = {}}, options(), dir.path() / "new"), "a loss");
  CHECK(!fs::exists(dir.path() / "new"));
  has(error_of<UserError>([&] { load_model(folder); }), "a module of its own");

  Config config = tiny_config(TaskKind::classify, dir.write("a.tsv", labelled("yes", "no")), 4);
  Run run = start_run(config);
  Callback silent;
  start(run, RunFolder(dir.path() / "of-config"), silent);
  has(refusal(model, problem_of(model), options(), dir.path() / "of-config"),
      "of a run of a config");
}

}  // namespace qkv::module_training_test
