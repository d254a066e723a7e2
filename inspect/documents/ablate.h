#pragma once

#include <span>
#include <vector>

#include "datasets/read_callback.h"
#include "inspect/ablation.h"
#include "inspect/documents/json.h"

namespace qkv::documents {

/// The effect of ablating components at once in each of these ways: {"mean" or "zero": {"loss",
/// "loss_change"}}, with the headline metric and its change where the evaluation has metrics.
Json ablated(const Ablation& ablation, const std::vector<Component>& off, const Evaluation& whole,
             std::span<const AblationKind> kinds);

/// Each component with the effect of ablating it alone.
std::vector<Json> each_ablated(const Ablation& ablation, const Evaluation& whole,
                               std::span<const AblationKind> kinds, ReadCallback& callback);

}  // namespace qkv::documents
