#include "train/storage/module_file.h"

#include "train/storage/checkpoint.h"

namespace qkv {

void save(const std::filesystem::path& file, const Module& module) {
  Checkpoint checkpoint;
  checkpoint.model = state_of(module);
  write_checkpoint(file, checkpoint);
}

void load(const std::filesystem::path& file, Module& module) {
  const Checkpoint checkpoint = read_checkpoint(file, CheckpointPart::without_optimizer);
  try {
    load_state(module, checkpoint.model);
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

}  // namespace qkv
