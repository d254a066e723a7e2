#include "inspect/documents/evaluation.h"

#include <algorithm>

namespace qkv {

std::optional<Baseline> majority_baseline(const Evaluation& evaluation) {
  if (evaluation.labels.empty()) return std::nullopt;
  const LabelScores& most = std::ranges::max(evaluation.labels, {}, &LabelScores::count);
  Index all = 0;
  for (const LabelScores& scores : evaluation.labels) all += scores.count;
  return Baseline{most.label,
                  static_cast<double>(most.count) / std::max(static_cast<double>(all), 1.0)};
}

Json to_json(const Evaluation& evaluation) {
  Json json = object({{"count", evaluation.count}, {"loss", evaluation.loss}});
  for (const auto& [name, value] : evaluation.metrics) json[name] = value;
  for (const LabelScores& scores : evaluation.labels) {
    json["labels"].push_back(scores.label);
    json["recall"][scores.label] = scores.recall;
    json["precision"][scores.label] = scores.precision;
    json["f1"][scores.label] = scores.f1;
    json["support"][scores.label] = scores.count;
    if (!scores.predicted.empty()) json["confusion"].push_back(scores.predicted);
  }
  if (const auto baseline = majority_baseline(evaluation))
    json["majority_baseline"] =
        object({{"label", baseline->label}, {"accuracy", baseline->accuracy}});
  if (evaluation.tokens.all > 0) {
    json["tokens"] = evaluation.tokens.all;
    json["unknown_tokens"] = evaluation.tokens.unknown;
  }
  return json;
}

}  // namespace qkv
