#include <doctest/doctest.h>

#include "core/memory.h"
#include "train/step.h"

using namespace qkv;

namespace {

/// How many blocks of tensor memory each training step takes from the system.
std::vector<std::size_t> blocks_of_steps(const Config& config, int steps) {
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  Run run = start_run(config);
  Stepper stepper(run);
  const auto taken = [&] { return pool.system_allocations() + stepper.system_allocations(); };
  std::vector<std::size_t> blocks;
  for (int i = 0; i < steps; ++i) {
    const std::size_t before = taken();
    StepGradients now = stepper.gradients();
    clip_norm(now.gradients, 1);
    run.optimizer->step(run.parameters, now.gradients, 1e-3, run.step++);
    blocks.push_back(taken() - before);
  }
  return blocks;
}

}  // namespace

TEST_CASE("a large batch takes no more tensor memory than one of half its size") {
  Config config;
  config.name = "gpt";
  config.task.kind = TaskKind::language_model;
  config.task.format = DataFormat::generated;
  config.model = {.kind = ModelKind::decoder,
                  .width = 256,
                  .layers = 1,
                  .heads = 2,
                  .feed_forward = 1024,
                  .max_length = 64};
  const auto blocks = [&](Index batch) {
    config.train.batch = batch;
    const Run run = start_run(config);
    Stepper stepper(run);
    stepper.gradients();
    return stepper.system_allocations();
  };
  CHECK(blocks(80) == blocks(40));
}

TEST_CASE("no training step takes tensor memory from the system after the third") {
  Config config;
  config.name = "gpt";
  config.task.kind = TaskKind::language_model;
  config.task.format = DataFormat::generated;
  config.model = {.kind = ModelKind::decoder,
                  .width = 16,
                  .layers = 2,
                  .heads = 2,
                  .feed_forward = 32,
                  .dropout = 0.1,
                  .max_length = 8};
  config.optimizer.kind = OptimizerKind::adamw;
  config.train.batch = 4;
  const auto blocks = blocks_of_steps(config, 8);
  CHECK(blocks[0] > 0);
  for (std::size_t i = 3; i < blocks.size(); ++i) CHECK(blocks[i] == 0);
}
