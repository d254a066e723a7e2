#include "train/commands/shared.h"
#include "train/terminal.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string model;
  std::string data;
  bool json = false;
};

Evaluation evaluated(const Options& options) {
  const Trained trained = load_trained(options.model);
  if (!options.data.empty())
    return trained.task->evaluate(*trained.network, std::filesystem::path(options.data));
  const auto task = make_task(trained.config);
  require<UserError>(
      task->vocabularies() == trained.task->vocabularies(),
      "the training data has changed since {} was trained; name the data with --data",
      options.model);
  const Split split = task->size(Split::test) > 0 ? Split::test : Split::valid;
  require<UserError>(task->size(split) > 0,
                     "the config of {} names no test data; name some with --data", options.model);
  if (!options.json) fmt::print("{} split: ", to_string(split));
  return task->evaluate(*trained.network, split);
}

int run(const Options& options) {
  const Evaluation evaluation = evaluated(options);
  if (options.json) {
    print(to_json(evaluation));
    return 0;
  }
  fmt::print("{} examples  loss {:.4f}", evaluation.count, evaluation.loss);
  for (const auto& [name, value] : evaluation.metrics) fmt::print("  {} {:.4f}", name, value);
  fmt::print("\n");
  if (evaluation.recall.empty()) return 0;
  std::vector<std::vector<std::string>> rows = {{"label", "recall"}};
  for (const auto& [label, recall] : evaluation.recall)
    rows.push_back({label, fmt::format("{:.4f}", recall)});
  fmt::print("{}", table(rows));
  return 0;
}

}  // namespace

void add_eval(CommandLine& program) {
  add_command<Options>(
      program, "eval",
      "Measure a model on its test split, without one on its valid split, or on a file",
      [](Command& command, Options& options) {
        add_model_argument(command, options.model);
        command.add_option("--data", options.data,
                           "File in the task's format [the config's test split]");
        add_threads_option(command);
        add_json_flag(command, options.json);
      },
      run);
}

}  // namespace qkv::commands
