// Checkpoints that were cut short or changed by accident, whose seal nobody mended: none is read.
#include <algorithm>

#include "tests/fuzz/readers/input.h"
#include "tests/fuzz/readers/samples.h"
#include "tests/support/mutations.h"
#include "train/storage/checkpoint.h"

void qkv::fuzz::read(std::span<const std::byte> input) {
  read_checkpoint(file_of(input));
  demand(std::ranges::any_of(checkpoint_files(), [&](const std::vector<std::byte>& file) {
    return std::ranges::equal(file, input);
  }));
}

/// Always of a sample, so that each input has one accident.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t, std::size_t max,
                                               unsigned seed) {
  std::mt19937_64 random(seed);
  const auto& files = qkv::fuzz::checkpoint_files();
  std::vector<std::byte> bytes = files[random() % files.size()];
  const std::size_t at = random() % bytes.size();
  switch (random() % 4) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      bytes[at] ^= static_cast<std::byte>(1 << random() % 8);
      break;
    case 2:  // a block that was never written
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                  std::min<std::size_t>(4096, bytes.size() - at), std::byte{0});
      break;
    case 3:
      qkv::mutate(bytes, random);
      break;
  }
  bytes.resize(std::min(bytes.size(), max));
  std::ranges::copy(bytes, reinterpret_cast<std::byte*>(data));
  return bytes.size();
}
