#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/config/config.h"
#include "train/tasks/task.h"

/// The data of `qkv fit`.
namespace qkv::commands {

/// The data as the first candidate reads them, and the seconds that reading took.
struct FitData {
  std::string file;
  TaskKind kind;
  std::shared_ptr<const Task> task;
  double reading;
  /// Lines on task, size, labels, lengths, duplicates, and test examples that are in the training
  /// data.
  std::vector<std::string> facts = {};
};
/// The data of `config`, which `file` names as the user does. Throws UserError.
FitData read_data(const std::string& file, const Config& config, ReadCallback& callback);

}  // namespace qkv::commands
