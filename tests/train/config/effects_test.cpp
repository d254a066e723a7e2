#include <doctest/doctest.h>

#include "optim/schedule.h"
#include "train/config/option_list.h"
#include "train/step.h"

using namespace qkv;

namespace {

Config config_of(ModelKind kind) {
  Config config;
  config.name = "tiny";
  config.task.train = QKV_SOURCE_DIR "/datasets/bank/valid.tsv";
  config.model = {.kind = kind, .width = 8, .heads = 2, .feed_forward = 16, .max_length = 32};
  config.train.batch = 4;
  return config;
}

Config static_task(Objective objective) {
  Config config = config_of(ModelKind::static_embedding);
  config.task.kind = TaskKind::static_embedding;
  config.task.objective = objective;
  return config;
}

Config attending(AttentionKind attention) {
  Config config = config_of(ModelKind::encoder);
  config.model.attention = attention;
  return config;
}

Config optimized(OptimizerKind kind, ScheduleKind schedule) {
  Config config = config_of(ModelKind::static_embedding);
  config.optimizer.kind = kind;
  config.schedule.kind = schedule;
  return config;
}

/// Parameters after two steps.
std::vector<double> trained(const Config& config) {
  Run run = start_run(config);
  Stepper stepper(run);
  for (; run.step < 2; ++run.step)
    run.optimizer->step(run.parameters, stepper.gradients().gradients,
                        learning_rate(config.schedule, config.optimizer.lr, run.step, 2), run.step);
  std::vector<double> all;
  for (const auto& [path, parameter] : run.parameters)
    for (const double value : parameter->value().values()) all.push_back(value);
  return all;
}

/// Sets an option to another value than it has.
void change(const Option& option) {
  const std::string before = option.print();
  for (const Value& value : std::vector<Value>{
           true, false, std::int64_t{1}, std::int64_t{2}, 0.25, std::string("gru"),
           std::string("uniform"), std::string("rotary"), std::string("post"), std::string("cbow"),
           std::string("learned"), std::string("skip"), std::string("balanced"),
           std::string("gelu"), std::string("first"), std::string("transformed"), TextList{"1"}})
    if (!option.assign(value) && option.print() != before) return;
  FAIL("no other value known");
}

}  // namespace

TEST_CASE("an option that is said to have no effect changes no bit of a training") {
  std::vector<Config> configs = {config_of(ModelKind::static_embedding),
                                 config_of(ModelKind::recurrent),
                                 config_of(ModelKind::convolution),
                                 config_of(ModelKind::fixed_length),
                                 attending(AttentionKind::parameter_free),
                                 attending(AttentionKind::uniform),
                                 static_task(Objective::glove)};
  for (const OptimizerRow& row : optimizer_kinds())
    configs.push_back(optimized(row.value, ScheduleKind::constant));
  for (const ScheduleRow& row : schedule_kinds())
    configs.push_back(optimized(OptimizerKind::sgd, row.value));
  for (const Config& config : configs) {
    const auto expected = trained(config);
    Config other = config;
    const std::size_t count = options_of(other).size();
    for (std::size_t i = 0; i < count; ++i) {
      other = config;
      const Option option = options_of(other)[i];
      CAPTURE(option.key);
      CAPTURE(to_toml(config));
      if (option.has_effect(config) || option.key == "task.data") continue;
      change(option);
      CHECK(trained(other) == expected);
    }
  }
}
