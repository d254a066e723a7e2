#pragma once

#include <span>
#include <string>

#include "core/parameter.h"

namespace qkv {

/// Freezes the modules of these names, each the path of one or more or its end: "embedding",
/// "encoder.layers.0", "layers.0", "attention". Throws UserError for an unknown name, and when
/// nothing is left to train.
void freeze_parts(Module& module, std::span<const std::string> names);

}  // namespace qkv
