#pragma once

#include "cli/commands/shared.h"
#include "inspect/report/report.h"

namespace qkv::commands {

/// Writes a page for the user and tells where it is and whose data it holds.
Document written_page(const std::filesystem::path& file, const ReportPage& page);

}  // namespace qkv::commands
