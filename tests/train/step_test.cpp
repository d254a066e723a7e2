#include "train/loop/step.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/parallel.h"
#include "layers/positions.h"
#include "tests/support/errors.h"
#include "tests/support/four_shards.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/run/run.h"

namespace qkv {
namespace {

/// A translator, whose examples have different target counts, small enough for two shards.
Config translator(Index batch, Index accumulate) {
  Config config = tiny_config(TaskKind::translate, QKV_SOURCE_DIR "/datasets/idiom/valid.tsv", 24);
  config.task.valid = config.task.train;
  config.model.feed_forward = 16;
  config.train.batch = batch;
  config.train.accumulate = accumulate;
  return config;
}

/// About those of a step.
double operations(const Run& run, Index tokens) {
  return 6 * static_cast<double>(tokens) * static_cast<double>(parameter_count(*run.network));
}

/// The examples of step 0, all at once.
StepGradients whole_step(const Run& run) {
  const TrainOptions& train = run.config.train;
  BatchSampler sampler(run.task->size(Split::train), train.batch, run.config.seed);
  std::vector<Index> examples;
  for (std::int64_t i = 0; i < train.accumulate; ++i)
    std::ranges::copy(sampler.at(i), std::back_inserter(examples));
  Context context;
  BatchLoss batch = run.task->loss(*run.network, examples, context);
  const double value = batch.value.item();
  Index tokens = 0;
  for (const Index example : examples) tokens += run.task->tokens(example);
  return {{value, tokens, batch.weight}, gradients_of(std::move(batch.value))};
}

void check_same_bits(const Run& run, const StepGradients& found, const StepGradients& expected) {
  CHECK(found.loss == expected.loss);
  for (const auto& [path, parameter] : run.parameters) {
    CAPTURE(path);
    CHECK(found.gradients.of(*parameter).values() == expected.gradients.of(*parameter).values());
  }
}

/// Checks a step on several numbers of threads, by one Stepper and by new ones, against the step on
/// one thread, which it returns.
StepGradients check_threads(const Run& run) {
  const int before = threads();
  set_threads(1);
  Stepper stepper(run);
  StepGradients alone = stepper.gradients();
  for (const int count : {2, 3, 4, 6, 8}) {
    CAPTURE(count);
    set_threads(count);
    check_same_bits(run, stepper.gradients(), alone);
    check_same_bits(run, Stepper(run).gradients(), alone);
  }
  set_threads(before);
  return alone;
}

}  // namespace

TEST_CASE("shards, chunks and micro-batches of unequal size give the mean over all targets") {
  // In the last, each shard has several chunks.
  for (const auto& [batch, accumulate, width] :
       {std::array<Index, 3>{7, 1, 8}, {5, 3, 8}, {1, 4, 8}, {121, 2, 320}}) {
    CAPTURE(batch);
    CAPTURE(accumulate);
    CAPTURE(width);
    Config config = translator(batch, accumulate);
    config.model.width = width;
    const Run run = start_run(config);
    const StepGradients whole = whole_step(run), cut = Stepper(run).gradients();
    CHECK((operations(run, whole.tokens / accumulate) > 1e10) == (width == 320));
    CHECK(cut.loss == doctest::Approx(whole.loss).epsilon(1e-6));
    CHECK(cut.weight == whole.weight);
    REQUIRE(cut.gradients.size() == whole.gradients.size());
    for (const auto& [path, parameter] : run.parameters) {
      CAPTURE(path);
      const auto a = cut.gradients.of(*parameter).values(),
                 b = whole.gradients.of(*parameter).values();
      for (std::size_t i = 0; i < a.size(); ++i)
        CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4).scale(1e-2));
    }
  }
}

TEST_CASE("a step has the same bits on any number of threads") {
  Config config = translator(12, 1);
  config.model.dropout = 0.2;
  bool long_ops = false;
  SUBCASE("shards in parallel") {}
  // Then the step is long enough for threads to share its ops.
  SUBCASE("shards whose ops are shared by threads") {
    long_ops = true;
    config.model.width = 256;
  }
  const Run run = start_run(config);
  CHECK((operations(run, check_threads(run).tokens) > 1e9) == long_ops);
}

TEST_CASE("lanes share the threads evenly, or else one lane has them all, where ops are long") {
  Config config = translator(12, 1);
  const Run short_ops = start_run(config);
  config.model.width = 256;
  const Run long_ops = start_run(config);
  REQUIRE(Stepper(long_ops).plan().shards.count == 2);
  const int before = threads();
  for (const auto& [count, lanes, threads_per_lane] :
       {std::array{1, 1, 1}, {2, 2, 1}, {3, 1, 3}, {4, 2, 2}, {6, 2, 3}, {8, 2, 4}}) {
    CAPTURE(count);
    set_threads(count);
    const StepPlan plan = Stepper(long_ops).plan();
    CHECK(plan.lanes == lanes);
    CHECK(plan.threads_per_lane == threads_per_lane);
    CHECK(Stepper(short_ops).plan().lanes == std::min(count, 2));
    CHECK(Stepper(short_ops).plan().threads_per_lane == 1);
  }
  set_threads(before);
}

TEST_CASE("lanes share the threads of the process and start none of their own") {
  const std::filesystem::path tasks = "/proc/self/task";  // a folder for each thread
  if (!std::filesystem::exists(tasks)) {
    MESSAGE("skipped: the system does not list the threads of a process");
    return;
  }
  const auto count_tasks = [&] {
    return std::distance(std::filesystem::directory_iterator(tasks), {});
  };
  Config config = translator(12, 1);
  config.model.width = 256;
  const Run run = start_run(config);
  Stepper stepper(run);
  const int before = threads();
  set_threads(4);
  REQUIRE(stepper.plan().threads_per_lane == 2);
  parallel_for(4, [](Index) {});  // starts them
  const auto count = count_tasks();
  stepper.gradients();
  CHECK(count_tasks() <= count);
  set_threads(before);
}

TEST_CASE("four shards have the same bits on any number of threads") {
  const Run run = start_run(four_shards());
  REQUIRE(Stepper(run).plan().shards.count == 4);
  check_threads(run);
}

TEST_CASE("a step that recomputes activations has the same bits, of every kind of transformer") {
  for (const ModelKind kind : {ModelKind::encoder, ModelKind::decoder, ModelKind::encoder_decoder})
    for (const NormKind norm : {NormKind::pre, NormKind::post, NormKind::none})
      for (const auto& position : position_kinds()) {
        CAPTURE(static_cast<int>(kind));
        CAPTURE(static_cast<int>(norm));
        CAPTURE(position.name);
        Config config = translator(5, 2);
        if (kind != ModelKind::encoder_decoder) {
          config.task.kind = TaskKind::word_sense;
          config.task.train = config.task.valid = QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";
        }
        config.model.kind = kind;
        config.model.norm = norm;
        config.model.position = position.value;
        config.model.layers = 3;
        config.model.dropout = 0.3;
        Run run = start_run(config);
        const StepGradients kept = Stepper(run).gradients();
        run.config.train.memory = "1B";
        Stepper stepper(run);
        REQUIRE(stepper.plan().recomputes);
        const StepGradients recomputed = stepper.gradients();
        CHECK(recomputed.gradients.norm() == kept.gradients.norm());
        check_same_bits(run, recomputed, kept);
      }
}

TEST_CASE("a batch has as many shards as pay") {
  constexpr Index small = 1 << 20, large = 10 << 20;
  // A small model has two for two threads, however short its step, where there are two examples.
  CHECK(shard_count(1000, 32, 100) == 2);
  CHECK(shard_count(small, 12, 768) == 2);
  CHECK(shard_count(small, 1, 4096) == 1);
  CHECK(shard_count(large, 12, 768) == 1);
  // At least 1024 tokens in each, a power of two, no more than examples and 1024.
  CHECK(shard_count(large, 16, 4095) == 2);
  CHECK(shard_count(large, 16, 4096) == 4);
  CHECK(shard_count(small, 16, 4096) == 4);
  CHECK(shard_count(small, 7, 7 * 4096) == 4);
  CHECK(shard_count(large, 3, 1 << 20) == 2);
  CHECK(shard_count(large, 1 << 20, Index{1} << 30) == 1024);
  // At least 2.5e8 operations in each: 6 for each token and parameter.
  CHECK(shard_count(40'000, 64, 4096) == 2);
  CHECK(shard_count(41'000, 64, 4096) == 4);
}

TEST_CASE("each chunk, micro-batch and step has dropout masks of its own") {
  // A text of one window: all examples are the same, so that losses differ by their masks alone.
  const TempDir dir;
  Config config = translator(1, 1);
  std::string text;
  for (int i = 0; i < 600; ++i) text += static_cast<char>('a' + i * i % 11);
  config.task.kind = TaskKind::language_model;
  config.task.train = dir.write("text", text).string();
  config.model.kind = ModelKind::decoder;
  config.model.dropout = 0.5;
  config.model.max_length = 600;
  const auto loss = [&](Index batch, Index accumulate, std::int64_t step, bool in_chunks) {
    config.train.batch = batch;
    config.train.accumulate = accumulate;
    Run run = start_run(config);
    REQUIRE(run.task->size(Split::train) == 1);
    CHECK((operations(run, batch * 600) > 1e10) == in_chunks);
    run.step = step;
    return Stepper(run).gradients().loss;
  };
  const auto differ = [](double a, double b) { return std::abs(a - b) > 1e-4; };
  const double one = loss(1, 1, 0, false);
  CHECK(differ(one, loss(1, 1, 1, false)));
  CHECK(differ(one, loss(1, 2, 0, false)));
  CHECK(differ(one, loss(2, 1, 0, false)));
  // Two shards of a chunk each, and of two chunks each.
  config.model.width = 320;
  config.model.feed_forward = 640;
  CHECK(differ(loss(2, 1, 0, false), loss(4, 1, 0, true)));
}

TEST_CASE("an error in either shard reaches the caller, and the next step is computed") {
  Run run = start_run(translator(6, 1));
  Parameter& weight = *run.parameters.back().parameter;
  const Tensor finite = weight.value().detach();
  weight.assign(Tensor::full(weight.shape(), std::numeric_limits<double>::infinity()));
  Stepper stepper(run);
  {
    const DetectAnomaly detect;
    CHECK_THROWS_AS(stepper.gradients(), AnomalyError);
  }
  weight.assign(finite);
  CHECK(std::isfinite(stepper.gradients().loss));
}

TEST_CASE("a step tells how many tokens it read, the decoder's first among them") {
  const Run run = start_run(translator(1, 3));
  CHECK(run.task->tokens(0) == 9 + 1 + 9);  // the first line of datasets/idiom/valid.tsv
  Index tokens = 0;
  BatchSampler sampler(run.task->size(Split::train), 1, run.config.seed);
  for (std::int64_t i = 0; i < 3; ++i) tokens += run.task->tokens(sampler.at(i)[0]);
  CHECK(Stepper(run).gradients().tokens == tokens);
}

}  // namespace qkv
