#pragma once

#include "inspect/documents/json.h"
#include "train/run/run.h"

namespace qkv::documents {

/// The claims of a model's config, checked: [{"name", "expect", "sentences", "passes",
/// "findings": [{"after", "measured", "holds"}]}], the first finding without an intervention; for
/// probes that cannot be asked of the model [{"error"}].
Json probes(const LoadedModel& model);

}  // namespace qkv::documents
