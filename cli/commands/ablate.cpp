#include <cmath>
#include <sstream>

#include "cli/commands/shared.h"
#include "inspect/ablation.h"

namespace qkv::commands {
namespace {

struct AblateOptions {
  std::string model;
  std::string data;
  std::vector<std::string> together;
};

/// Components that are off at once, and what that does.
struct AblatedGroup {
  std::vector<Component> components;
  Evaluation mean, zero;
};

/// The change of the loss and of the headline metric.
struct Change {
  std::string metric;
  double loss, metric_change;
};

Change change_of(const Evaluation& ablated, const Evaluation& whole) {
  const auto& [metric, value] = whole.metrics.front();
  return {metric, ablated.loss - whole.loss, ablated.metric(metric) - value};
}

std::vector<Component> components_of(const Ablation& ablation, const std::string& ids) {
  std::vector<Component> found;
  std::istringstream list(ids);
  for (std::string id; std::getline(list, id, ',');)
    found.push_back(component_of(ablation.components(), id));
  require<UserError>(!found.empty(), "--together names no component");
  return found;
}

AblatedGroup ablated(const Ablation& ablation, const std::vector<Component>& components) {
  return {components, ablation.without(components, AblationKind::mean),
          ablation.without(components, AblationKind::zero)};
}

/// Progress alone: what was done to the data is said once.
class OnlyProgress : public ReadCallback {
 public:
  explicit OnlyProgress(ReadCallback& next) : next_(next) {}
  void on_reading(std::string_view what, double fraction) override {
    next_.on_reading(what, fraction);
  }

 private:
  ReadCallback& next_;
};

/// Every component alone, what harms most first.
std::vector<AblatedGroup> each_ablated(const Ablation& ablation, ReadCallback& callback) {
  std::vector<AblatedGroup> groups;
  for (const Component& component : ablation.components()) {
    callback.on_item("ablating", groups.size(), ablation.components().size());
    groups.push_back(ablated(ablation, {component}));
  }
  std::ranges::stable_sort(groups, std::greater(),
                           [](const AblatedGroup& group) { return group.mean.loss; });
  return groups;
}

Json json_of_change(const Evaluation& ablated, const Evaluation& whole) {
  const Change change = change_of(ablated, whole);
  return {{"loss", ablated.loss},
          {"loss_change", change.loss},
          {change.metric, ablated.metric(change.metric)},
          {change.metric + "_change", change.metric_change}};
}

Json json_of_changes(const AblatedGroup& group, const Evaluation& whole) {
  return {{"mean", json_of_change(group.mean, whole)}, {"zero", json_of_change(group.zero, whole)}};
}

Rows change_table(const std::vector<AblatedGroup>& groups, const Evaluation& whole) {
  const std::string metric = whole.metrics.front().first;
  Rows rows = {{"id", "off", "mean: loss", metric, "zero: loss", metric}};
  for (const AblatedGroup& group : groups) {
    std::string ids, labels;
    for (const Component& component : group.components) {
      ids += (ids.empty() ? "" : ",") + component.id;
      labels += (labels.empty() ? "" : "; ") + component.label;
    }
    rows.push_back({ids, labels});
    for (const Evaluation& evaluation : {group.mean, group.zero}) {
      const Change change = change_of(evaluation, whole);
      rows.back().push_back(fmt::format("{:.4f}", change.loss));
      rows.back().push_back(fmt::format("{:.4f}", change.metric_change));
    }
  }
  return rows;
}

/// The change of the loss by layer and component.
HeatMap change_map(const std::vector<Component>& components, const std::vector<AblatedGroup>& alone,
                   Evaluation AblatedGroup::*ablated, const Evaluation& whole) {
  HeatMap map;
  const auto index_of = [](std::vector<std::string>& labels, const std::string& label) {
    const auto found = std::ranges::find(labels, label);
    const auto index = static_cast<std::size_t>(found - labels.begin());
    if (found == labels.end()) labels.push_back(label);
    return index;
  };
  // "decoder, layer 0, head 1" is a cell of the row "decoder, layer 0".
  for (const Component& component : components) {
    const auto comma = component.label.rfind(", ");
    const std::size_t row = index_of(map.rows, component.label.substr(0, comma)),
                      column = index_of(map.columns, component.label.substr(comma + 2));
    const auto group = std::ranges::find(alone, component.id, [](const AblatedGroup& candidate) {
      return candidate.components.front().id;
    });
    map.cells.resize(map.rows.size());
    map.cells[row].resize(std::max(map.cells[row].size(), column + 1), std::nan(""));
    map.cells[row][column] = change_of((*group).*ablated, whole).loss;
  }
  for (auto& row : map.cells) row.resize(map.columns.size(), std::nan(""));
  map.has_two_signs = true;
  return map;
}

/// Maps of both ways to ablate, of one scale.
void add_change_maps(Document& document, const std::vector<Component>& components,
                     const std::vector<AblatedGroup>& alone, const Evaluation& whole) {
  HeatMap mean = change_map(components, alone, &AblatedGroup::mean, whole),
          zero = change_map(components, alone, &AblatedGroup::zero, whole);
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
  OnlyProgress progress(notes);
  const auto data = evaluation_data(trained, options.model, options.data, notes);
  const Evaluation whole = data.evaluate({}, notes);
  const Ablation ablation(
      trained, [&](const EvaluationOptions& how) { return data.evaluate(how, progress); });
  std::vector<AblatedGroup> together;
  for (const std::string& ids : options.together)
    together.push_back(ablated(ablation, components_of(ablation, ids)));
  const auto alone = each_ablated(ablation, notes);
  document.data = {{"data", data.name}, {"whole", commands::to_json(whole)}};
  for (const AblatedGroup& group : alone) {
    const Component& component = group.components.front();
    Json json = commands::to_json(component);
    json.update(json_of_changes(group, whole));
    document.data["components"].push_back(json);
  }
  for (const AblatedGroup& group : together) {
    Json json = {{"components", Json::array()}};
    for (const Component& component : group.components) json["components"].push_back(component.id);
    json.update(json_of_changes(group, whole));
    document.data["together"].push_back(json);
  }
  add_evaluation(document, data.name, whole);
  document.add_text("\nchange when a component's output is its mean over all tokens, or zero\n");
  document.add_table(change_table(alone, whole));
  add_change_maps(document, ablation.components(), alone, whole);
  if (together.empty()) return document;
  document.add_text("\nchange when several are off at once\n");
  document.add_table(change_table(together, whole));
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
