#include "cli/commands/shared.h"

namespace qkv::commands {
namespace {

struct EvalOptions {
  std::string model;
  std::string data;
  bool skip_unknown_labels = false;
};

/// Notes what was done to the data.
class Notes : public ReadCallback {
 public:
  explicit Notes(Document& document) : document_(document) {}
  void on_message(const std::string& line) override { document_.add_note("{}", line); }

 private:
  Document& document_;
};

/// What is measured and what it is called.
struct Measured {
  std::string name;  ///< "test split"
  Evaluation evaluation;
};

/// A split with a file of its own: nothing else is read.
Measured of_file(const LoadedModel& trained, const EvalOptions& options, ReadCallback& callback) {
  const TaskOptions& task = trained.config.task;
  const bool has_test = !task.test.empty();
  const std::string& file = has_test ? task.test : task.valid;
  require<UserError>(!file.empty(), "the config of {} names no test data; name some with --data",
                     options.model);
  require<UserError>(
      std::filesystem::exists(file),
      "{}: its data no longer exists: there is no {}; name other data with --data FILE",
      options.model, file);
  return {has_test ? "test split" : "valid split",
          trained.task->evaluate(*trained.network, std::filesystem::path(file), callback)};
}

/// A split that is drawn from all of the data.
Measured of_drawn(const LoadedModel& trained, const EvalOptions& options, ReadCallback& callback) {
  require_data(trained.config, options.model, "--data FILE");
  const auto task = task_with_data(trained, callback);
  require<UserError>(
      task->vocabularies() == trained.task->vocabularies(),
      "the training data has changed since {} was trained; name the data with --data",
      options.model);
  const Split split = task->size(Split::test) > 0 ? Split::test : Split::valid;
  require<UserError>(task->size(split) > 0,
                     "the config of {} names no test data; name some with --data", options.model);
  return {fmt::format("{} split", to_string(split)), task->evaluate(*trained.network, split)};
}

Measured measured(const EvalOptions& options, ReadCallback& callback) {
  LoadedModel trained = load_model(options.model);
  if (options.skip_unknown_labels) {
    trained.config.task.unknown_labels = UnknownLabels::skip;
    trained.task = restore_task(trained.config, trained.task->vocabularies());
  }
  if (!options.data.empty())
    return {options.data, trained.task->evaluate(*trained.network,
                                                 std::filesystem::path(options.data), callback)};
  const TaskOptions& task = trained.config.task;
  const bool has_files =
      task.format == DataFormat::files && (!task.test.empty() || task.data.empty());
  return has_files ? of_file(trained, options, callback) : of_drawn(trained, options, callback);
}

Rows label_table(const Evaluation& evaluation) {
  Rows rows = {{"label", "precision", "recall", "F1", "examples"}};
  for (const LabelScores& scores : evaluation.labels)
    rows.push_back({scores.label, fmt::format("{:.4f}", scores.precision),
                    fmt::format("{:.4f}", scores.recall), fmt::format("{:.4f}", scores.f1),
                    fmt::format("{}", scores.count)});
  return rows;
}

/// A row for each right label, a column for each label that the model gives.
Rows confusion_table(const Evaluation& evaluation) {
  Rows rows(1, {""});
  for (const LabelScores& scores : evaluation.labels) {
    rows.front().push_back(scores.label);
    rows.push_back({scores.label});
    for (const Index count : scores.predicted) rows.back().push_back(fmt::format("{}", count));
  }
  return rows;
}

Document evaluate(const EvalOptions& options) {
  Document document;
  Notes notes(document);
  const auto [name, evaluation] = measured(options, notes);
  document.data = commands::to_json(evaluation);
  document.add_text("{}: {}\n", name, to_text(evaluation));
  if (evaluation.labels.empty()) return document;
  document.add_table(label_table(evaluation));
  document.add_text("\nhow often the examples of a label are given each label:\n");
  document.add_table(confusion_table(evaluation));
  return document;
}

}  // namespace

void add_eval(CommandLine& program) {
  add_command<EvalOptions>(
      program, "eval",
      "Measure a model on its test split, without one on its valid split, or on a file",
      [](Command& command, EvalOptions& options) {
        add_model_argument(command, options.model);
        command.add_option("--data", options.data,
                           "File in the task's format [the config's test split]");
        command.add_flag("--skip-unknown-labels", options.skip_unknown_labels,
                         "Leave out examples whose label training has not seen, with a count");
        add_threads_option(command);
      },
      evaluate);
}

}  // namespace qkv::commands
