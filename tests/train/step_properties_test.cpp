// Properties that the gradients of a step have by their definition, the mean over all targets of an
// effective batch, however it is computed.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>

#include "core/parallel.h"
#include "tests/support/forwarding_task.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thread_ranks.h"
#include "tests/support/tiny_config.h"
#include "train/loop/step.h"
#include "train/run/run.h"

namespace qkv::step_properties_test {
using namespace qkv::tests;

namespace {

struct Step {
  double loss;
  std::map<std::string, std::vector<double>> gradients;  ///< by path
};

Step step_of(const Run& run, const Communicator& ranks = single_process) {
  const StepGradients step = Stepper(run, ranks).gradients();
  Step result{step.loss, {}};
  for (const auto& [path, parameter] : run.parameters)
    if (step.gradients.has(*parameter))
      result.gradients[path] = step.gradients.of(*parameter).values();
  return result;
}

/// Equal but for rounding.
void check_equal(const Step& a, const Step& b) {
  CHECK(a.loss == doctest::Approx(b.loss).epsilon(1e-5));
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (const auto& [path, values] : a.gradients) {
    CAPTURE(path);
    const auto& others = b.gradients.at(path);
    REQUIRE(values.size() == others.size());
    double worst = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      worst = std::max(worst, std::abs(values[i] - others[i]));
    CHECK(worst < 1e-5);
  }
}

/// Twelve texts of 2 to 7 words, of which one in six has the label `rare`.
std::string texts(std::string_view usual, std::string_view rare, std::string_view columns = "") {
  std::string text;
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("{}\t{}bank w{}", i % 6 == 4 ? rare : usual, columns, i % 5);
    for (int word = 0; word < i % 6; ++word) text += fmt::format(" w{}", (i * word) % 7);
    text += "\n";
  }
  return text;
}

Config config_of(TaskKind task, const std::filesystem::path& train) {
  Config config = tiny_config(task, train, 32);
  config.model.feed_forward = 16;
  config.train.batch = 12;
  return config;
}

/// Trainings whose loss draws nothing.
std::vector<Config> configs(const TempDir& dir) {
  std::vector<Config> all;
  const auto add = [&](TaskKind task, const char* name, const std::string& text) -> Config& {
    return all.emplace_back(config_of(task, dir.write(name, text)));
  };
  add(TaskKind::classify, "c.tsv", texts("a", "b"));
  add(TaskKind::classify, "c.tsv", texts("a", "b")).task.class_weights = ClassWeights::balanced;
  Config& smooth = add(TaskKind::classify, "c.tsv", texts("a", "b"));
  smooth.task.class_weights = ClassWeights::balanced;
  smooth.task.label_smoothing = 0.2;
  Config& sense = add(TaskKind::word_sense, "s.tsv", texts("a", "b", "0\t"));
  sense.task.class_weights = ClassWeights::balanced;
  sense.model.kind = ModelKind::recurrent;
  add(TaskKind::translate, "t.tsv", texts("x y", "z"));
  add(TaskKind::language_model, "l.txt", texts("a", "b"));
  add(TaskKind::static_embedding, "v.txt", texts("a", "b")).task.objective = Objective::glove;
  return all;
}

}  // namespace

TEST_CASE("any split of an effective batch gives the same step, with class weights, too") {
  const TempDir dir;
  for (Config config : configs(dir)) {
    CAPTURE(to_toml(config));
    const Step whole = step_of(start_run(config));
    for (const auto& [batch, accumulate] :
         {std::array<Index, 2>{6, 2}, {4, 3}, {3, 4}, {2, 6}, {1, 12}}) {
      CAPTURE(batch);
      config.train.batch = batch;
      config.train.accumulate = accumulate;
      check_equal(step_of(start_run(config)), whole);
    }
  }
}

TEST_CASE("the loss of a step is sum(w l) / sum(w) with a label's weight w = 1 / frequency") {
  const TempDir dir;
  Config config = config_of(TaskKind::classify, dir.write("f.tsv", texts("a", "b")));
  config.task.class_weights = ClassWeights::balanced;
  const Run run = start_run(config);
  double sum = 0, weights = 0;
  for (Index i = 0; i < 12; ++i) {
    Context context;
    const Index one[] = {i};
    const double weight = run.task->example(Split::train, i).label == "b" ? 1.0 / 2 : 1.0 / 10;
    sum += weight * run.task->loss(*run.network, one, context).value.item();
    weights += weight;
  }
  CHECK(step_of(run).loss == doctest::Approx(sum / weights).epsilon(1e-6));
}

TEST_CASE("a step with class weights has the same bits on any number of threads and ranks") {
  const TempDir dir;
  Config config = config_of(TaskKind::classify, dir.write("f.tsv", texts("a", "b")));
  config.task.class_weights = ClassWeights::balanced;
  config.train.batch = 3;
  config.train.accumulate = 4;
  const int before = threads();
  set_threads(1);
  const Step alone = step_of(start_run(config));
  for (const int count : {2, 3}) {
    set_threads(count);
    CHECK(step_of(start_run(config)).gradients == alone.gradients);
  }
  set_threads(before);
  for (const Index size : {2, 3}) {
    std::mutex checks;  // of doctest
    on_ranks(size, [&](const Communicator& ranks) {
      const Step together = step_of(start_run(config), ranks);
      const std::scoped_lock lock(checks);
      CHECK(together.loss == alone.loss);
      CHECK(together.gradients == alone.gradients);
    });
  }
}

TEST_CASE("examples that all come twice give the same step") {
  const TempDir dir;
  for (Config config : configs(dir)) {
    if (config.task.kind == TaskKind::language_model ||
        config.task.kind == TaskKind::static_embedding)
      continue;  // whose examples are no lines
    CAPTURE(to_toml(config));
    const Step once = step_of(start_run(config));
    std::ifstream file(config.task.train);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    config.task.train = dir.write("twice.tsv", text + text).string();
    config.train.batch = 24;
    check_equal(step_of(start_run(config)), once);
  }
}

TEST_CASE("labels with other names give the same step, with the rows of the output exchanged") {
  const TempDir dir;
  Config config = config_of(TaskKind::classify, dir.write("f.tsv", texts("a", "b")));
  config.task.class_weights = ClassWeights::balanced;
  const Run run = start_run(config);
  config.task.train = dir.write("g.tsv", texts("b", "a")).string();
  const Run renamed = start_run(config);
  // The labels being sorted, each has the other's row.
  const auto exchanged = [](const Tensor& rows) {
    return concatenate({slice(rows, 0, 1, 2), slice(rows, 0, 0, 1)}, 0);
  };
  const auto is_output = [](const std::string& path) { return path.starts_with("head."); };
  for (std::size_t i = 0; i < run.parameters.size(); ++i) {
    const auto& [path, parameter] = run.parameters[i];
    const Tensor value = parameter->value().detach();
    renamed.parameters[i].parameter->assign(is_output(path) ? exchanged(value) : value);
  }
  Step step = step_of(run);
  for (auto& [path, values] : step.gradients)
    if (is_output(path)) {
      const auto half = static_cast<std::ptrdiff_t>(values.size() / 2);
      std::ranges::rotate(values, values.begin() + half);
    }
  check_equal(step_of(renamed), step);
}

namespace {

/// A classifier that notes the first number of each random stream that it is given.
class Noting final : public ForwardingTask {
 public:
  explicit Noting(const Config& config) : ForwardingTask(config, make_task(config)) {}

  Index tokens(Index) const override { return tokens_of_each; }
  BatchLoss loss(const Network& network, std::span<const Index> examples,
                 Context& context) const override {
    Context copy = context;
    drawn.push_back(copy.next_random().bits(0));
    return ForwardingTask::loss(network, examples, context);
  }

  Index tokens_of_each = 1;
  mutable std::vector<std::uint32_t> drawn;
};

}  // namespace

TEST_CASE("no random stream comes twice in a training whose steps have 2, 4 and 8 shards") {
  const int before = threads();
  set_threads(1);
  const TempDir dir;
  Config config = config_of(TaskKind::classify, dir.write("f.tsv", texts("a", "b")));
  config.train.batch = 8;
  config.train.accumulate = 2;
  Run run = start_run(config);
  auto noting = std::make_unique<Noting>(config);
  Noting& task = *noting;
  run.task = std::move(noting);
  std::set<Index> shards;
  for (; run.step < 24; ++run.step) {
    // So many tokens that the operations pay for 2, 4 or 8 shards.
    task.tokens_of_each =
        std::array<Index, 3>{1, 40000, 80000}[static_cast<std::size_t>(run.step % 3)];
    Stepper stepper(run);
    shards.insert(stepper.plan().shards.count);
    stepper.gradients();
  }
  set_threads(before);
  REQUIRE(shards.size() == 3);
  CHECK(std::set(task.drawn.begin(), task.drawn.end()).size() == task.drawn.size());
}

}  // namespace qkv::step_properties_test
