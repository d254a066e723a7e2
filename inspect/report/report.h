#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace qkv {

/// One HTML page that needs nothing else: training curves, results, attention, embeddings, weights
/// and config of a run, or of every run in a folder that `qkv compare` made. Shows the attention of
/// `sentences`, else of some from the run's data. Throws UserError.
std::string report_page(const std::filesystem::path& run, std::span<const std::string> sentences);

/// Whether a file begins as such a page.
bool begins_as_report_page(std::string_view beginning);

}  // namespace qkv
