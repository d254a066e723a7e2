#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <set>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/run/run.h"

namespace qkv::evaluation_test {

namespace {

/// More examples than evaluation takes at once, with different target counts.
Config config_of(TaskKind task, const std::filesystem::path& train) {
  Config config = tiny_config(task, train, 32);
  config.model.layers = 1;
  config.model.feed_forward = 16;
  return config;
}

/// The loss of training examples, `batch` at a time: the mean over all their targets.
double mean_loss(const Run& run, const std::vector<Index>& examples, std::size_t batch) {
  const NoGrad no_grad;
  double sum = 0;
  Index targets = 0;
  for (std::size_t begin = 0; begin < examples.size(); begin += batch) {
    Context context;
    const auto part = std::span(examples).subspan(begin, std::min(batch, examples.size() - begin));
    const BatchLoss loss = run.task->loss(*run.network, part, context);
    sum += loss.value.item() * static_cast<double>(loss.targets);
    targets += loss.targets;
  }
  return sum / static_cast<double>(targets);
}

std::vector<Index> examples_of(const Run& run) {
  std::vector<Index> all(static_cast<std::size_t>(run.task->size(Split::train)));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Evaluation gives the mean over targets, whatever the batches.
void check_loss(const Run& run, const std::vector<Index>& examples) {
  const double loss = run.task->evaluate(*run.network, Split::train).loss;
  for (const std::size_t batch : {std::size_t{1}, std::size_t{7}, examples.size()}) {
    CAPTURE(batch);
    CHECK(mean_loss(run, examples, batch) == doctest::Approx(loss).epsilon(1e-5));
  }
}

const std::filesystem::path data = QKV_SOURCE_DIR "/datasets";

}  // namespace

TEST_CASE("the loss of an evaluation is the mean over all targets, whatever the batches") {
  for (const auto& [task, file] : {std::pair(TaskKind::word_sense, "bank/valid.tsv"),
                                   std::pair(TaskKind::classify, "sentiment/valid.tsv"),
                                   std::pair(TaskKind::coreference, "pronoun/valid.tsv"),
                                   std::pair(TaskKind::masked_language_model, "bank/valid.tsv"),
                                   std::pair(TaskKind::translate, "idiom/valid.tsv")}) {
    CAPTURE(file);
    const Run run = start_run(config_of(task, data / file));
    CHECK(run.task->size(Split::train) > 64);
    check_loss(run, examples_of(run));
  }
}

TEST_CASE("the loss of an evaluation of static embeddings does not depend on the batches") {
  for (const Objective objective : {Objective::skip_gram, Objective::cbow, Objective::glove}) {
    CAPTURE(static_cast<int>(objective));
    Config config = config_of(TaskKind::static_embedding, data / "sentiment/valid.tsv");
    config.task.objective = objective;
    const Run run = start_run(config);
    CHECK(run.task->size(Split::train) > 256);
    check_loss(run, examples_of(run));
  }
}

TEST_CASE("the loss and metrics of an evaluation do not depend on the order of the lines") {
  const TempDir dir;
  for (const auto& [task, objective] : {std::pair(TaskKind::masked_language_model, Objective::cbow),
                                        std::pair(TaskKind::classify, Objective::cbow),
                                        std::pair(TaskKind::static_embedding, Objective::skip_gram),
                                        std::pair(TaskKind::static_embedding, Objective::cbow),
                                        std::pair(TaskKind::static_embedding, Objective::glove)}) {
    CAPTURE(static_cast<int>(task));
    Config config = config_of(task, data / "sentiment/valid.tsv");
    config.task.objective = objective;
    const Run run = start_run(config);
    std::string reversed;
    std::ifstream lines(data / "sentiment/valid.tsv");
    for (std::string line; std::getline(lines, line);) reversed.insert(0, line + "\n");
    const Evaluation one = run.task->evaluate(*run.network, data / "sentiment/valid.tsv"),
                     other = run.task->evaluate(*run.network, dir.write("r.tsv", reversed));
    CHECK(other.loss == doctest::Approx(one.loss).epsilon(1e-5));
    CHECK(other.metrics.front().second ==
          doctest::Approx(one.metrics.front().second).epsilon(1e-5));
  }
}

TEST_CASE("a language model's training windows are task.stride tokens apart and cover the text") {
  const TempDir dir;
  std::string text;
  for (char c = '!'; c < '!' + 50; ++c) text += c;  // and a line end
  Config config = config_of(TaskKind::language_model, dir.write("text", text));
  config.model.max_length = 6;
  for (const auto& [stride, windows, targets] :
       {std::tuple<Index, Index, Index>{1, 45, 45 * 6}, {4, 12, 12 * 6}, {6, 9, 50}}) {
    CAPTURE(stride);
    config.task.stride = stride;
    const Run run = start_run(config);
    CHECK(run.task->size(Split::train) == windows);
    std::vector<Index> all(static_cast<std::size_t>(windows));
    std::iota(all.begin(), all.end(), 0);
    Context context;
    CHECK(run.task->loss(*run.network, all, context).targets == targets);
  }
}

TEST_CASE("a language model is evaluated on windows side by side, the last one shorter") {
  const TempDir dir;
  std::string text;
  for (int i = 0; text.size() < 5000; ++i) text += fmt::format("{} bottles, ", i);
  const std::string windows = text.substr(0, 100 * 32);
  const auto whole = dir.write("whole", windows);
  const auto longer = dir.write("longer", windows + "\nand a bit");
  for (const ModelKind kind : {ModelKind::decoder, ModelKind::recurrent}) {
    Config config = config_of(TaskKind::language_model, longer);
    config.model.kind = kind;
    const Run run = start_run(config);
    std::vector<Index> starts;
    for (Index i = 0; i < 100; ++i) starts.push_back(i * 32);
    const double side_by_side = mean_loss(run, starts, 10);
    CHECK(run.task->evaluate(*run.network, whole).loss ==
          doctest::Approx(side_by_side).epsilon(1e-5));
    const Evaluation all = run.task->evaluate(*run.network, longer);
    CHECK(all.count == 100 * 32 + 10);
    const auto rest = dir.write("rest", "\nand a bit");
    const Evaluation end = run.task->evaluate(*run.network, rest);
    CHECK(end.count == 10);
    const double sum = side_by_side * 3200 + end.loss * 10;
    CHECK(all.loss == doctest::Approx(sum / 3210).epsilon(1e-5));
  }
}

TEST_CASE("evaluation draws a static embedding's windows and negatives anew for each word") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 100; ++i) text += fmt::format("a b c d e f g h i j{}\n", i);
  const Run run = start_run(config_of(TaskKind::static_embedding, dir.write("text", text)));
  const NoGrad no_grad;
  std::set<Index> pairs;
  std::set<double> losses;
  for (const Index line : {0, 10, 20, 30, 40, 50, 60, 70, 80, 90}) {
    Context context;
    const Index middle[] = {10 * line + 5};  // but for the last word, lines are equal
    const BatchLoss loss = run.task->loss(*run.network, middle, context);
    pairs.insert(loss.targets);
    losses.insert(loss.value.item());
  }
  CHECK(pairs.size() > 2);
  CHECK(losses.size() == 10);
}

}  // namespace qkv::evaluation_test
