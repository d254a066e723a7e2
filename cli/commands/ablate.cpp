#include <fmt/ranges.h>

#include <cmath>
#include <sstream>

#include "cli/commands/shared.h"
#include "inspect/documents/ablate.h"

namespace qkv::commands {
namespace {

struct AblateOptions {
  std::string model;
  std::string data;
  std::vector<std::string> together;
};

constexpr AblationKind both_kinds[] = {AblationKind::mean, AblationKind::zero};

std::vector<Component> components_of(const Ablation& ablation, const std::string& ids) {
  std::vector<Component> found;
  std::istringstream list(ids);
  for (std::string id; std::getline(list, id, ',');)
    found.push_back(component_of(ablation.components(), id));
  require<UserError>(!found.empty(), "--together names no component");
  return found;
}

/// The components that are off at once, one by one and as a text.
Json names_of(const std::vector<Component>& components) {
  std::vector<std::string> ids, labels;
  for (const Component& component : components) {
    ids.push_back(component.id);
    labels.push_back(component.label);
  }
  return object({{"components", ids},
                 {"id", fmt::format("{}", fmt::join(ids, ","))},
                 {"label", fmt::format("{}", fmt::join(labels, "; "))}});
}

Cells change_table(const Json& records, const std::string& metric) {
  return table_of(records, {{"id", "/id"},
                            {"off", "/label"},
                            {"mean: loss", "/mean/loss_change"},
                            {metric, "/mean/" + metric + "_change"},
                            {"zero: loss", "/zero/loss_change"},
                            {metric, "/zero/" + metric + "_change"}});
}

/// The change of the loss by layer and component, with `kind` "mean" or "zero".
HeatMap change_map(const std::vector<Json>& alone, const char* kind) {
  HeatMap map;
  const auto index_of = [](std::vector<std::string>& labels, const std::string& label) {
    const auto found = std::ranges::find(labels, label);
    const auto index = static_cast<std::size_t>(found - labels.begin());
    if (found == labels.end()) labels.push_back(label);
    return index;
  };
  // "decoder, layer 0, head 1" is a cell of the row "decoder, layer 0".
  for (const Json& record : alone) {
    const auto label = record["label"].get<std::string>();
    const auto comma = label.rfind(", ");
    const std::size_t row = index_of(map.rows, label.substr(0, comma)),
                      column = index_of(map.columns, label.substr(comma + 2));
    map.cells.resize(map.rows.size());
    map.cells[row].resize(std::max(map.cells[row].size(), column + 1), std::nan(""));
    map.cells[row][column] = record[kind]["loss_change"].get<double>();
  }
  for (auto& row : map.cells) row.resize(map.columns.size(), std::nan(""));
  map.has_two_signs = true;
  return map;
}

void add_change_maps(Document& document, const std::vector<Json>& alone) {
  HeatMap mean = change_map(alone, "mean"), zero = change_map(alone, "zero");
  auto cells = mean.cells;
  cells.insert(cells.end(), zero.cells.begin(), zero.cells.end());
  mean.largest = zero.largest = largest_absolute(cells);
  document.add_picture({.title = "mean ablation: change of the loss", .content = mean});
  document.add_picture({.title = "zero ablation: change of the loss", .content = zero});
}

Document ablate(const AblateOptions& options) {
  const LoadedModel trained = load_model(options.model);
  Document document;
  Notes notes(document);
  ReadCallback silent;  // notes on the data were made when it was read
  const auto data = evaluation_data(trained, options.model, options.data, notes);
  const Evaluation whole = data.evaluate({}, notes);
  const Ablation ablation(trained,
                          [&](const EvaluationOptions& how) { return data.evaluate(how, silent); });
  Json together = Json::array();
  for (const std::string& ids : options.together) {
    const auto components = components_of(ablation, ids);
    together.push_back(names_of(components));
    together.back().update(documents::ablated(ablation, components, whole, both_kinds));
  }
  const auto in_order = documents::each_ablated(ablation, whole, both_kinds, notes);
  auto alone = in_order;
  std::ranges::stable_sort(alone, std::greater(),
                           [](const Json& record) { return record["mean"]["loss"].get<double>(); });
  document.data = object({{"data", data.name}, {"whole", to_json(whole)}, {"components", alone}});
  add_evaluation(document, data.name, whole);
  document.add_text("\nchange when a component's output is its mean over all tokens, or zero\n");
  document.add_table(change_table(alone, whole.metrics.front().first));
  add_change_maps(document, in_order);
  if (together.empty()) return document;
  document.data["together"] = together;
  document.add_text("\nchange when several are off at once\n");
  document.add_table(change_table(together, whole.metrics.front().first));
  return document;
}

}  // namespace

Command ablate_command() {
  const auto o = std::make_shared<AblateOptions>();
  return {.name = "ablate",
          .summary = "Measure a model with each attention head and feed-forward block ablated",
          .options = {model_argument(o->model),
                      evaluation_data_option(o->data),
                      {"--together IDS", &o->together,
                       "Also ablate these at once: ids with commas, such as 0.1,1.ff for head 1 of "
                       "layer 0 and the feed-forward block of layer 1"},
                      threads_option()},
          .has_pictures = true,
          .run = [o](const Stream&) { return ablate(*o); }};
}

}  // namespace qkv::commands
