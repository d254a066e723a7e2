#include "inspect/documents/ablate.h"

namespace qkv::documents {

Json ablated(const Ablation& ablation, const std::vector<Component>& off, const Evaluation& whole,
             std::span<const AblationKind> kinds) {
  Json json = Json::object();
  for (const AblationKind kind : kinds) {
    const Evaluation found = ablation.without(off, kind);
    Json change = object({{"loss", found.loss}, {"loss_change", found.loss - whole.loss}});
    if (!whole.metrics.empty()) {
      const auto& [metric, value] = whole.metrics.front();
      change[metric] = found.metric(metric);
      change[metric + "_change"] = found.metric(metric) - value;
    }
    json[kind == AblationKind::mean ? "mean" : "zero"] = change;
  }
  return json;
}

std::vector<Json> each_ablated(const Ablation& ablation, const Evaluation& whole,
                               std::span<const AblationKind> kinds, ReadCallback& callback) {
  std::vector<Json> records;
  for (const Component& component : ablation.components()) {
    callback.on_item("ablating", records.size(), ablation.components().size());
    records.push_back(to_json(component));
    records.back().update(ablated(ablation, {component}, whole, kinds));
  }
  return records;
}

}  // namespace qkv::documents
