#include "train/task.h"

#include "train/word_sense.h"

namespace qkv {

std::string_view to_string(Split split) {
  return split == Split::train ? "train" : split == Split::valid ? "valid" : "test";
}

std::unique_ptr<Task> make_task(const Config& config) {
  return std::make_unique<WordSense>(config);
}

std::unique_ptr<Task> restore_task(const Config& config, const Task::Vocabularies& vocabularies) {
  return std::make_unique<WordSense>(config, vocabularies);
}

}  // namespace qkv
