#pragma once

#include <optional>
#include <vector>

#include "inspect/documents/json.h"
#include "inspect/explain.h"
#include "inspect/logit_attribution.h"

namespace qkv::documents {

enum class Parameters { left_out, shown };

/// {"tokens", "ids", "index", "steps": [{"path", "symbol", "formula", "values"}], "attention":
/// [{"path", "scale", "mask", "heads": [{"q", "k", "v", "scores", "scaled", "weights", "mixed"}]}],
/// "labels", "logits", "probabilities", "parameters": values by path, "inputs" and "outputs" of a
/// written text, "logit_lens": [{"after", "logits", "probabilities"}], "attribution": {"answer",
/// "runner_up", "parts": [{"label", "logit", "difference", "component"}]}}; the last two where
/// there are such.
Json explain(const LoadedModel& trained, const Explanation& explanation,
             const std::vector<LensState>& lens, const std::optional<LogitAttribution>& attribution,
             Parameters parameters);

}  // namespace qkv::documents
