#include "cli/commands/shared.h"

namespace qkv::commands {
namespace {

struct EvalOptions {
  std::string model;
  std::string data;
  bool skip_unknown_labels = false;
};

/// The model with the options that say how labels are read.
LoadedModel loaded(const EvalOptions& options) {
  LoadedModel trained = load_model(options.model);
  if (options.skip_unknown_labels) {
    trained.config.task.unknown_labels = UnknownLabels::skip;
    trained.task = restore_task(trained.config, trained.task->vocabularies());
  }
  return trained;
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
  const LoadedModel trained = loaded(options);
  const auto data = evaluation_data(trained, options.model, options.data, notes);
  const Evaluation evaluation = data.evaluate({}, notes);
  document.data = commands::to_json(evaluation);
  document.add_text("{}: {}\n", data.name, to_text(evaluation));
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
        add_evaluation_data_option(command, options.data);
        command.add_flag("--skip-unknown-labels", options.skip_unknown_labels,
                         "Leave out examples whose label training has not seen, with a count");
        add_threads_option(command);
      },
      evaluate);
}

}  // namespace qkv::commands
