#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/run/run.h"

namespace qkv::report {

/// Texts that a page shows, and where they are from.
struct Examples {
  std::string from;                 ///< the split: "test"
  std::vector<LabelledText> texts;  ///< of the data that the config names
  std::vector<LabelledText> shown;  ///< those whose attention is shown
};

/// Texts of the test data if there are any, none where the data no longer exist. Shows `sentences`,
/// else some of the model's probes and of the data. Throws UserError for a sentence that the model
/// cannot read.
Examples examples_of(const LoadedModel& model, std::span<const std::string> sentences);

}  // namespace qkv::report
