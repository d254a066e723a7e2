#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "layers/model.h"
#include "optim/schedule.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/config/option_list.h"
#include "train/config/task_kinds.h"
#include "train/loop/step.h"
#include "train/run/run.h"

namespace qkv::effects_test {

namespace {

Config config_of(ModelKind kind) {
  Config config;
  config.name = "tiny";
  config.task.train = QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";
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

using Parameters = std::map<std::string, std::vector<double>>;

/// Parameters after two steps, by path; with `task` on what it has read.
Parameters trained(const Config& config, std::shared_ptr<const Task> task = nullptr) {
  Run run = start_run(config, silent_reading, std::move(task));
  Stepper stepper(run);
  for (; run.step < 2; ++run.step)
    run.optimizer->step(run.parameters, stepper.gradients().gradients,
                        learning_rate(config.schedule, config.optimizer.lr, run.step, 2), run.step);
  Parameters all;
  for (const auto& [path, parameter] : run.parameters) all[path] = parameter->value().values();
  return all;
}

/// Whether the options suit the data and the files that they name.
bool can_start(const Config& config) {
  try {
    start_run(config);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

/// Whether the parameters that both have are equal.
bool agree(const Parameters& a, const Parameters& b) {
  return std::ranges::all_of(a, [&](const auto& entry) {
    const auto found = b.find(entry.first);
    return found == b.end() || found->second == entry.second;
  });
}

const std::vector<Value> values = {true,
                                   false,
                                   std::int64_t{1},
                                   std::int64_t{2},
                                   0.25,
                                   std::string("gru"),
                                   std::string("rnn"),
                                   std::string("uniform"),
                                   std::string("parameter-free"),
                                   std::string("sinusoidal"),
                                   std::string("rotary"),
                                   std::string("relative"),
                                   std::string("none"),
                                   std::string("post"),
                                   std::string("cbow"),
                                   std::string("glove"),
                                   std::string("learned"),
                                   std::string("skip"),
                                   std::string("balanced"),
                                   std::string("gelu"),
                                   std::string("naive-bayes"),
                                   std::string("char"),
                                   std::string("bpe"),
                                   TextList{"1"}};

/// Sets an option to another value than it has.
void change(const Option& option) {
  const std::string before = option.print();
  for (const Value& value : values)
    if (!option.assign(value) && option.print() != before) return;
  FAIL("no other value known");
}

/// Ten sentences of several words, in which "bank" is word 2, with unequal labels.
const std::string sentences =
    "a\t2\tat the bank of the river\nb\t2\tin my bank with money\na\t2\tat a bank near water\n"
    "a\t2\ton the bank of sand\nb\t2\tthis big bank is paper\na\t2\tby the bank river water\n"
    "a\t2\tat that bank of the stream\na\t2\tto the bank the river the water\n"
    "b\t2\tof my bank pays\na\t2\ta green bank by the river\n";

/// A training of each task, on files in `dir`.
Config config_of(TaskKind task, const TempDir& dir) {
  const bool two_columns = task == TaskKind::translate || task == TaskKind::classify;
  std::string text = sentences;
  for (auto at = text.find("\t2\t"); at != text.npos; at = text.find("\t2\t"))
    text.replace(at, 3, two_columns ? "\t" : "\t2 ");
  Config config =
      tiny_config(task, dir.write("data", task == TaskKind::word_sense ? sentences : text), 16);
  config.model.feed_forward = 8;
  config.optimizer.kind = OptimizerKind::sgd;
  config.optimizer.lr = 1;
  config.optimizer.require_gradients = true;
  config.train.batch = 10;
  return config;
}

bool agree_with_each_other(const Config& config) {
  return !find_conflict(config) && !find_conflict_at_start(config);
}

/// Whether `read_config` would accept the options of `config` that are not those of `usual`.
bool is_accepted(Config config, Config usual) {
  const std::vector<Option> options = options_of(config), before = options_of(usual);
  for (std::size_t i = 0; i < options.size(); ++i)
    if (options[i].print() != before[i].print() && !options[i].has_effect(config)) return false;
  return agree_with_each_other(config);
}

/// Models of a task of which others are one change away.
std::vector<Config> models_for(const Config& task) {
  std::vector<Config> models;
  for (const ModelRow& row : model_kinds()) {
    Config config = task;
    config.model.kind = row.value;
    config.model.bidirectional =
        row.value == ModelKind::recurrent && task.task.kind == TaskKind::masked_language_model;
    if (!is_accepted(config, task)) continue;
    models.push_back(config);
    for (void (*const alter)(Config&) : std::initializer_list<void (*)(Config&)>{
             [](Config& c) { c.model.attention = AttentionKind::uniform; },
             [](Config& c) { c.model.attention = AttentionKind::parameter_free; },
             [](Config& c) { c.model.position = PositionKind::relative; },
             [](Config& c) { c.head.tied = true; },
             [](Config& c) { c.model.norm = NormKind::none, c.model.feed_forward = 0; }}) {
      Config changed = config;
      alter(changed);
      if (is_accepted(changed, config)) models.push_back(changed);
    }
  }
  return models;
}

/// Calls `use(config, usual)` for the models of each task with each value of each option of a model
/// that is accepted, where `usual` has another.
template <class Use>
void for_each_accepted(const Use& use) {
  const TempDir dir;
  for (const TaskRow& task : task_kinds()) {
    // The layers of these are those of word-sense.
    if (task.value == TaskKind::coreference || task.value == TaskKind::tagging) continue;
    for (const Config& usual : models_for(config_of(task.value, dir))) {
      Config config = usual;
      for (const Option& option : options_of(config)) {
        if (!option.key.starts_with("model.")) continue;
        for (const Value& value : values) {
          config = usual;
          if (option.assign(value) || config == usual) continue;
          const ModelOptions& m = config.model;
          const bool same_heads = m.kv_heads == m.heads && usual.model.kv_heads == 0;
          const bool trains = m.embedding == EmbeddingKind::learned && m.embedding_file.empty() &&
                              m.max_length == usual.model.max_length;
          if (trains && !same_heads && option.has_effect(config) && agree_with_each_other(config))
            use(config, usual);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("an option that is said to have no effect changes no bit of a training") {
  std::vector<Config> configs = {config_of(ModelKind::static_embedding),
                                 config_of(ModelKind::recurrent),
                                 config_of(ModelKind::convolution),
                                 config_of(ModelKind::fixed_length),
                                 attending(AttentionKind::parameter_free),
                                 attending(AttentionKind::uniform),
                                 attending(AttentionKind::learned),
                                 config_of(ModelKind::decoder),
                                 static_task(Objective::glove),
                                 static_task(Objective::skip_gram)};
  for (const ModelKind kind : {ModelKind::static_embedding, ModelKind::decoder}) {
    Config without_norm = config_of(kind);
    without_norm.model.norm = NormKind::none;
    without_norm.model.feed_forward = 0;
    without_norm.task.kind = TaskKind::classify;
    without_norm.task.train = QKV_SOURCE_DIR "/datasets/sentiment/valid.tsv";
    configs.push_back(without_norm);
  }
  Config tied = config_of(ModelKind::recurrent);
  tied.task.kind = TaskKind::language_model;
  tied.head.tied = true;
  configs.push_back(tied);
  for (const TaskKind task : {TaskKind::word_sense, TaskKind::masked_language_model}) {
    Config bert = config_of(ModelKind::bert);
    bert.task.kind = task;
    bert.head.tied = task == TaskKind::masked_language_model;
    configs.push_back(bert);
  }
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
      CHECK(agree(trained(other), expected));
    }
  }
}

TEST_CASE("an option of a model that is accepted changes what is trained, by all its parameters") {
  Config model;
  Parameters expected;
  for_each_accepted([&](const Config& config, const Config& usual) {
    if (usual != model) expected = trained(usual);
    model = usual;
    CAPTURE(to_toml(usual));
    CAPTURE(differing_options(usual, config));
    CHECK(trained(config) != expected);
  });
}

TEST_CASE("a model learns the same from a task that another one has read, if theirs are equal") {
  const TempDir dir;
  for (const TaskRow& row : task_kinds()) {
    if (row.value == TaskKind::coreference) continue;  // read as word-sense
    const Config usual = config_of(row.value, dir);
    const std::shared_ptr<const Task> task = make_task(usual);
    Config config = usual;
    std::size_t equal = 0;
    for (const Option& option : options_of(config)) {
      CAPTURE(option.key);
      for (const Value& value : values) {
        config = usual;
        if (option.assign(value) || config == usual || !is_accepted(config, usual)) continue;
        if (!have_equal_tasks(config, usual) || !can_start(config)) continue;
        CHECK_FALSE(option.key.starts_with("task."));
        CHECK(trained(config, task) == trained(config));
        ++equal;
        break;
      }
    }
    CHECK(equal > 10);
  }
}

}  // namespace qkv::effects_test
