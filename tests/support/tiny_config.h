#pragma once

#include <filesystem>
#include <string>

#include "train/config/config.h"

namespace qkv {

/// A config of this task on these training data, with a small model of a kind that the task has.
inline Config tiny_config(TaskKind task, const std::filesystem::path& train, Index max_length) {
  Config config;
  config.name = "tiny";
  config.task.kind = task;
  config.task.train = train.string();
  config.model.width = 8;
  config.model.heads = 2;
  config.model.max_length = max_length;
  if (task == TaskKind::translate) config.model.kind = ModelKind::encoder_decoder;
  if (task == TaskKind::language_model) config.model.kind = ModelKind::decoder;
  if (task == TaskKind::static_embedding) config.model.kind = ModelKind::static_embedding;
  return config;
}

/// Lines of texts of two words, of which the first decides the label.
inline std::string labelled(const std::string& of_good, const std::string& of_bad) {
  std::string text;
  for (const char* second : {"day", "week", "month", "year"})
    text += fmt::format("{}\tgood {}\n{}\tbad {}\n", of_good, second, of_bad, second);
  return text;
}

}  // namespace qkv
