// Configs: of a file with variants and probes, and of a checkpoint.
#include "train/config/config.h"
#include "tests/fuzz/readers/input.h"

void qkv::fuzz::read(std::span<const std::byte> input) {
  try {
    const Config config = parse_config(text_of(input), "input");
    demand(parse_config(to_toml(config), "written") == config);
  } catch (const UserError&) {
    // A file may hold what a checkpoint may not.
  }
  for (const Variant& variant : read_config(file_of(input), {}).variants)
    demand(!variant.config.name.empty());
}
