#include "cli/commands/shared.h"
#include "core/packed_weights.h"
#include "train/tasks/ensemble.h"

namespace qkv::commands {
namespace {

struct EvalOptions {
  std::vector<std::string> models;
  std::string data;
  bool skip_unknown_labels = false;
  bool int8 = false;
};

/// The model with the options that say how labels are read.
LoadedModel loaded(const std::string& model, const EvalOptions& options) {
  LoadedModel trained = load_model(model);
  if (options.skip_unknown_labels) {
    trained.config.task.unknown_labels = UnknownLabels::skip;
    trained.task = restore_task(trained.config, trained.task->vocabularies());
  }
  return trained;
}

/// The name of the data, such as "test split", and the evaluation of the models together.
std::pair<std::string, Evaluation> measured(const EvalOptions& options, ReadCallback& callback) {
  std::vector<std::vector<std::filesystem::path>> ensembles;
  std::size_t count = 0;
  for (const std::string& model : options.models)
    count += ensembles.emplace_back(ensemble_of(model)).size();
  std::vector<Evaluation> evaluations;
  std::string name;
  for (const auto& ensemble : ensembles) {
    std::vector<Evaluation> of_models;
    for (const auto& model : ensemble) {
      const LoadedModel trained = loaded(model, options);
      const auto data = evaluation_data(trained, model, options.data, callback);
      name = data.name;
      of_models.push_back(data.evaluate({.probabilities = count > 1}, callback));
    }
    evaluations.push_back(averaged(of_models));
  }
  if (count > 1) name += fmt::format(", {} models averaged", count);
  return {name, averaged(evaluations)};
}

/// A row for each right label, a column for each label that the model gives.
Cells confusion_table(const Evaluation& evaluation) {
  Cells rows(1, {""});
  for (const LabelScores& scores : evaluation.labels) {
    rows.front().push_back(scores.label);
    rows.push_back({scores.label});
    for (const Index count : scores.predicted) rows.back().push_back(fmt::format("{}", count));
  }
  return rows;
}

void add_labels(Document& document, const Evaluation& evaluation) {
  Cells rows = {{"label", "precision", "recall", "F1", "examples"}};
  for (const LabelScores& scores : evaluation.labels)
    rows.push_back({scores.label, fmt::format("{:.4f}", scores.precision),
                    fmt::format("{:.4f}", scores.recall), fmt::format("{:.4f}", scores.f1),
                    fmt::format("{}", scores.count)});
  document.add_table(std::move(rows));
  document.add_text("\nhow often the examples of a label are given each label:\n");
  document.add_table(confusion_table(evaluation));
}

void add_context(Document& document, const Evaluation& evaluation) {
  if (const auto baseline = majority_baseline(evaluation))
    document.add_text("\nalways answering \"{}\": accuracy {:.4f}\n", baseline->label,
                      baseline->accuracy);
  const auto [all, unknown] = evaluation.tokens;
  if (all == 0) return;
  document.add_text("{} of {} tokens are not in the vocabulary ({:.1f} %)\n", unknown, all,
                    100 * static_cast<double>(unknown) / static_cast<double>(all));
}

Document evaluate(const EvalOptions& options) {
  Document document;
  Notes notes(document);
  PackedWeights weights(WeightFormat::int8);
  const ExecutionScope scope(
      Execution::current().with(&Execution::packed, options.int8 ? &weights : nullptr));
  const auto [name, evaluation] = measured(options, notes);
  document.data = to_json(evaluation);
  add_evaluation(document, name, evaluation);
  if (evaluation.labels.size() > most_compared_labels) {
    document.add_text("{} labels, of which --json gives the scores\n", evaluation.labels.size());
  } else if (!evaluation.labels.empty()) {
    add_labels(document, evaluation);
  }
  add_context(document, evaluation);
  return document;
}

}  // namespace

Command eval_command() {
  const auto o = std::make_shared<EvalOptions>();
  return {.name = "eval",
          .summary = "Measure a model on its test split, else its validation split, or on a file",
          .options = {required({"MODEL", &o->models,
                                "A checkpoint file, or a run folder: its best checkpoint, else its "
                                "newest; of several models the probabilities are averaged"}),
                      evaluation_data_option(o->data),
                      {"--skip-unknown-labels", &o->skip_unknown_labels,
                       "Leave out examples whose label training has not seen, with a count"},
                      int8_flag(o->int8),
                      threads_option()},
          .run = [o](const Stream&) { return evaluate(*o); }};
}

}  // namespace qkv::commands
