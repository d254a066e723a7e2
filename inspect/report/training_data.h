#pragma once

#include <map>
#include <string>

#include "inspect/report/loaded_run.h"

namespace qkv::report {

/// The config of a run as a page shows it. A page is for others: a path leads from a folder that
/// also holds the run; of a file that shares no folder with it, it is the name alone.
Config shown_config(const LoadedRun& run);

/// The configs that a page trains, and the texts of the data files that these name, once for all
/// runs.
class TrainingData {
 public:
  /// {"config": TOML, "files": [path as the config has it]}; null for a run that starts from
  /// another model, and where a file is gone, is no UTF-8 or does not fit.
  Json add(const LoadedRun& run);
  /// {path: text}
  const std::map<std::string, std::string>& files() const { return files_; }

 private:
  std::map<std::string, std::string> files_;
  std::size_t characters_ = 0;  ///< of all files in the page
};

}  // namespace qkv::report
