#pragma once

#include "cli/commands/shared.h"

namespace qkv::commands {

/// Writes a page for the user and tells where it is.
Document written_page(const std::filesystem::path& file, const std::string& page);

}  // namespace qkv::commands
