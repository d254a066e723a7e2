#include <doctest/doctest.h>

#include "core/memory.h"
#include "core/parallel.h"
#include "optim/clip.h"
#include "train/loop/step.h"
#include "train/run/run.h"

using namespace qkv;

namespace {

/// How many bytes of tensor memory each training step takes from the system.
std::vector<std::size_t> bytes_of_steps(const Config& config, int steps) {
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  Run run = start_run(config);
  Stepper stepper(run);
  const auto taken = [&] { return pool.system_bytes() + stepper.system_bytes(); };
  std::vector<std::size_t> bytes;
  for (int i = 0; i < steps; ++i) {
    const std::size_t before = taken();
    StepGradients now = stepper.gradients();
    clip_norm(now.gradients, 1);
    run.optimizer->step(run.parameters, now.gradients, 1e-3, run.step++);
    bytes.push_back(taken() - before);
  }
  return bytes;
}

Config gpt(Index width, Index layers, Index max_length, Index batch) {
  Config config;
  config.name = "gpt";
  config.task.kind = TaskKind::language_model;
  config.task.data = QKV_SOURCE_DIR "/datasets/random/text.txt";
  config.model = {.kind = ModelKind::decoder,
                  .width = width,
                  .layers = layers,
                  .heads = 2,
                  .feed_forward = 4 * width,
                  .dropout = 0.1,
                  .max_length = max_length};
  config.optimizer.kind = OptimizerKind::adamw;
  config.train.batch = batch;
  return config;
}

}  // namespace

TEST_CASE("a batch of more chunks and as many shards takes no more tensor memory") {
  const auto bytes = [](Index batch) {
    const Run run = start_run(gpt(256, 1, 64, batch));
    Stepper stepper(run);
    REQUIRE(stepper.plan().shards.count == 4);
    stepper.gradients();
    return stepper.system_bytes();
  };
  CHECK(bytes(96) == bytes(64));
}

TEST_CASE(
    "within a budget of memory, blocks keep their input alone, and one lane computes at a time") {
  const auto bytes = [](std::string_view memory) {
    Run run = start_run(gpt(64, 8, 64, 32));
    run.config.train.memory = memory;
    Stepper stepper(run);
    stepper.gradients();
    return stepper.system_bytes();
  };
  const auto most = bytes(""), in_turn = bytes("35MB"), least = bytes("1MB");
  CHECK(bytes("1GB") == most);
  CHECK(3 * in_turn < 2 * most);
  CHECK(3 * least < 2 * in_turn);
}

TEST_CASE("no training step takes tensor memory from the system after the third") {
  const int before = threads();
  Config config = gpt(16, 2, 8, 4);
  SUBCASE("on the default number of threads") {}
  SUBCASE("with lanes of two threads") {
    config = gpt(128, 2, 64, 12);
    set_threads(4);
  }
  const auto bytes = bytes_of_steps(config, 8);
  set_threads(before);
  CHECK(bytes[0] > 0);
  for (std::size_t i = 3; i < bytes.size(); ++i) CHECK(bytes[i] == 0);
}
