#pragma once

#include <optional>
#include <string>

#include "inspect/documents/json.h"

namespace qkv {

/// Always giving the most frequent label of the data.
struct Baseline {
  std::string label;
  double accuracy;
};
/// None without labels.
std::optional<Baseline> majority_baseline(const Evaluation& evaluation);

/// {"count", "loss"} and the metrics; of labels "labels", "recall", "precision", "f1", "support"
/// and "confusion"; "majority_baseline"; "tokens" and "unknown_tokens"; as far as there are such.
Json to_json(const Evaluation& evaluation);

}  // namespace qkv
