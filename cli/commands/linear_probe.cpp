#include "inspect/linear_probe.h"
#include "cli/commands/shared.h"
#include "inspect/labelled_text.h"

namespace qkv::commands {
namespace {

struct LinearProbeOptions {
  std::string model;
  std::string train, data;
};

using Texts = std::vector<LabelledText>;

struct Data {
  Texts train, test;
};

Texts texts_of(const Task& task, Split split) {
  Texts texts;
  for (Index i = 0; i < task.size(split); ++i) texts.push_back(task.example(split, i));
  return texts;
}

/// The files that the user named, else the config's files or the splits that are drawn from them.
Data data_of(const LoadedModel& trained, const LinearProbeOptions& options,
             ReadCallback& callback) {
  const TaskOptions& task = trained.config.task;
  const bool names_both = !options.train.empty() && !options.data.empty();
  std::shared_ptr<const Task> drawn;
  if (!names_both && draws_splits(task)) drawn = drawn_task(trained, options.model, callback);
  const auto texts_of_file = [&](const std::string& file, std::string_view option) {
    require<UserError>(!file.empty(), "the config names no such data; name some with {}", option);
    require<UserError>(std::filesystem::exists(file), "there is no {}; name other data with {}",
                       file, option);
    return read_labelled_texts(trained, file, callback);
  };
  const auto texts = [&](const std::string& named, Split split, const std::string& of_config,
                         std::string_view option) {
    if (drawn && named.empty()) return texts_of(*drawn, split);
    return texts_of_file(named.empty() ? of_config : named, option);
  };
  const Split measured = drawn ? measured_split(*drawn, options.model) : Split::test;
  return {texts(options.train, Split::train, task.train, "--train FILE"),
          texts(options.data, measured, task.test.empty() ? task.valid : task.test, "--data FILE")};
}

Document linear_probe(const LinearProbeOptions& options) {
  const LoadedModel trained = load_model(options.model);
  Document document;
  Notes notes(document);
  const auto [train, test] = data_of(trained, options, notes);
  Json layers = Json::array();
  HeatMap map{{{}, {}}, {"accuracy", "control task"}, {}};
  for (const auto& [label, accuracy, control, selectivity] :
       linear_probes(trained, train, test, notes)) {
    layers.push_back(object({{"state", label},
                             {"accuracy", accuracy},
                             {"control", control},
                             {"selectivity", selectivity}}));
    map.columns.push_back(label);
    map.cells[0].push_back(accuracy);
    map.cells[1].push_back(control);
  }
  document.data = object({{"train", train.size()}, {"test", test.size()}, {"layers", layers}});
  document.add_text("linear probes of {} texts, tested on {}\n", train.size(), test.size());
  document.add_table(table_of(layers, {{"state", "/state"},
                                       {"accuracy", "/accuracy"},
                                       {"control task", "/control"},
                                       {"selectivity", "/selectivity"}}));
  document.add_picture({.title = "linear probes: accuracy by residual state",
                        .content = map,
                        .needs_colours = true});
  return document;
}

}  // namespace

Command linear_probe_command() {
  const auto o = std::make_shared<LinearProbeOptions>();
  return {.name = "linear-probe",
          .summary =
              "Measure at which layer a linear classifier reads the labels, beside a control task",
          .options = {model_argument(o->model),
                      {"--train FILE", &o->train,
                       "File in the task's format to fit on [the config's training split]"},
                      evaluation_data_option(o->data)},
          .has_pictures = true,
          .run = [o](const Stream&) { return linear_probe(*o); }};
}

}  // namespace qkv::commands
