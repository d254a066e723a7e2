#pragma once

#include <string_view>

#include "train/config/toml_document.h"

namespace qkv {

/// Replaces options of earlier versions in a stored configuration. Throws ConfigError when one has
/// a value that this version cannot reproduce.
void drop_former_options(TomlTable& config, std::string_view source);

/// How to say what an option of earlier versions said; empty for a key that never was one.
std::string_view successor_of(std::string_view key);

}  // namespace qkv
