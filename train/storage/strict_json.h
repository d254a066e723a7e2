#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace qkv {

/// Parses a JSON object of an unknown author. Throws FileError, without the name of the file, when
/// it is none, is nested deeper than `deepest` levels or names something twice in one object; the
/// latter two while it is read.
nlohmann::json strict_json(std::string_view text, int deepest);

}  // namespace qkv
