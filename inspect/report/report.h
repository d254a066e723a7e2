#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/config.h"

namespace qkv {

struct ReportPage {
  std::string html;
  std::vector<std::string> data_files;  ///< whose texts are in it, for those who may read them
};

/// One HTML page that needs nothing else: training curves, results, attention, embeddings, weights
/// and config of a run, or of every run in a folder that `qkv compare` made. Shows the attention of
/// `sentences`, else of some from the run's data. Throws UserError.
ReportPage report_page(const std::filesystem::path& run, std::span<const std::string> sentences);

/// Such a page of the configs of `file`, which lies in `folder`: with their data and models that
/// are not trained, for the page to train. Throws UserError, also where it cannot train them.
ReportPage untrained_page(const ConfigFile& file, const std::filesystem::path& folder);

/// Whether a file begins as such a page.
bool begins_as_report_page(std::string_view beginning);

}  // namespace qkv
