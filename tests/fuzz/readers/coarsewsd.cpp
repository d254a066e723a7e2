// A folder of CoarseWSD-20; the parts of an input are its files.
#include "datasets/coarsewsd.h"

#include "tests/fuzz/readers/input.h"

void qkv::fuzz::read(std::span<const std::byte> input) {
  constexpr const char* names[] = {"classes_map.txt", "train.data.txt", "train.gold.txt",
                                   "test.data.txt", "test.gold.txt"};
  const auto parts = parts_of(input, std::size(names));
  std::filesystem::path folder;
  for (std::size_t i = 0; i < parts.size(); ++i) folder = file_of(parts[i], names[i]).parent_path();
  const CoarseWsd splits = read_coarsewsd(folder, 0.25, 1);
  demand(!splits.train.empty() && !splits.test.empty());
  for (const auto* rows : {&splits.train, &splits.valid, &splits.test})
    for (const TsvRow& row : *rows) demand(row.fields.size() == 3);
}
