#include <doctest/doctest.h>

#include "tests/support/modules.h"
#include "tests/support/temp_dir.h"
#include "train/run.h"

using namespace qkv;

namespace {

/// Words are cut off a row of these, so that examples differ in length, words and loss.
const std::vector<std::string> words = {"a", "b", "c", "d", "e", "f", "g"};

/// `count` words, `k` choosing which.
std::string sentence(int count, int k) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += (i ? " " : "") + words[static_cast<std::size_t>((k + i * (k % 3 + 1)) % 7)];
  return text;
}

/// Data of 64 + 64 + 7 examples, the last longer than the others.
std::string lines_of(TaskKind task) {
  std::string text;
  for (int k = 0; k < 135; ++k) {
    const int length = k < 128 ? 2 + k % 3 : 6 + k % 2;
    const std::string s = sentence(length, k), label = k % 3 ? "x" : "y";
    switch (task) {
      case TaskKind::word_sense:
        text += fmt::format("{}\t{}\t{}\n", label, k % length, s);
        break;
      case TaskKind::classify:
        text += fmt::format("{}\t{}\n", label, s);
        break;
      case TaskKind::coreference:
        text += fmt::format("{}\t{}\t{}\n", k % length, (k + 1) % length, s);
        break;
      default:
        text += s + "\n";
    }
  }
  return text;
}

Config config_of(TaskKind task, const std::filesystem::path& file) {
  Config config;
  config.name = "tiny";
  config.task.kind = task;
  config.task.train = config.task.valid = file.string();
  if (task == TaskKind::static_embedding) config.model.kind = ModelKind::static_embedding;
  config.model.width = 8;
  config.model.heads = 2;
  config.model.feed_forward = 8;
  config.model.max_length = 8;
  return config;
}

Run run_of(const Config& config) {
  Run run = start_run(config);
  tests::assign_normal(*run.network);
  return run;
}

/// The mean loss over all targets, from the examples one by one.
double mean_over_targets(const Run& run) {
  const NoGrad no_grad;
  double loss = 0;
  Index targets = 0;
  for (Index i = 0; i < run.task->size(Split::train); ++i) {
    Context context;
    const Index example[] = {i};
    const BatchLoss alone = run.task->loss(*run.network, example, context);
    loss += alone.value.item() * static_cast<double>(alone.targets);
    targets += alone.targets;
  }
  return loss / static_cast<double>(targets);
}

void check_evaluation(const Config& config) {
  const Run run = run_of(config);
  const Evaluation evaluation = run.task->evaluate(*run.network, Split::train);
  CHECK(evaluation.loss == doctest::Approx(mean_over_targets(run)).epsilon(1e-5));
  const Evaluation of_file =
      run.task->evaluate(*run.network, std::filesystem::path(config.task.train));
  CHECK(of_file.loss == evaluation.loss);
  CHECK(of_file.count == evaluation.count);
  CHECK(of_file.metrics == evaluation.metrics);
}

}  // namespace

TEST_CASE("the loss of an evaluation in several batches is the mean over single examples") {
  for (const TaskKind task : {TaskKind::word_sense, TaskKind::classify, TaskKind::coreference}) {
    CAPTURE(static_cast<int>(task));
    const TempDir dir;
    check_evaluation(config_of(task, dir.write("f.tsv", lines_of(task))));
  }
}

TEST_CASE("the loss of an evaluation of GloVe is the mean over pairs") {
  const TempDir dir;
  // 300 words and their neighbours: more than two batches of 256 pairs.
  std::string text;
  for (int i = 0; i < 300; ++i) text += fmt::format("w{} ", i);
  Config config = config_of(TaskKind::static_embedding, dir.write("text", text + "\n"));
  config.task.objective = Objective::glove;
  config.task.window = 1;
  REQUIRE(make_task(config)->size(Split::train) == 598);
  check_evaluation(config);
}
