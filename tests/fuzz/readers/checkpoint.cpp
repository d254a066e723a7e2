// Checkpoints behind a right seal and of the length that they state, so that the structure of the
// HDF5 file and what it holds are attacked. Inputs are their bytes without the seal.
#include "train/storage/checkpoint.h"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/readers/input.h"
#include "tests/fuzz/readers/samples.h"
#include "tests/support/mutations.h"
#include "train/run/check_checkpoint.h"
#include "train/run/run.h"
#include "train/run/run_difference.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max);

namespace qkv::fuzz {
namespace {

constexpr std::size_t length_at = 40;  // in the superblock

/// A checkpoint that was read can be written, and is then read as an equal one.
void check_copy(const Checkpoint& checkpoint) {
  const auto copy = file_of({}, "copy");
  try {
    write_checkpoint(copy, checkpoint);
    demand(!first_difference(checkpoint, read_checkpoint(copy)));
  } catch (const Error&) {
    demand(false);
  }
}

}  // namespace

void read(std::span<const std::byte> input) {
  std::vector<std::byte> bytes(input.begin(), input.end());
  const std::uint64_t length = bytes.size();
  if (length >= length_at + sizeof length)
    std::memcpy(bytes.data() + length_at, &length, sizeof length);
  const std::string seal = seal_of(bytes);
  std::ranges::copy(std::as_bytes(std::span(seal)), std::back_inserter(bytes));
  const auto file = file_of(bytes);
  const Checkpoint checkpoint = read_checkpoint(file);
  demand(checkpoint.step >= 0);
  if (const auto best = best_step_of(checkpoint)) demand(*best >= 0 && *best <= checkpoint.step);
  check_copy(checkpoint);
  check_checkpoint(checkpoint, parse_config(checkpoint.config, "input"), file);
  demand(non_finite_tensor(checkpoint).empty());

  const LoadedModel model = model_of(checkpoint, file);
  for (const auto& [path, parameter] : parameters(*model.network)) {
    const Tensor& stored = checkpoint.model.at(path);
    demand(parameter->shape() == stored.shape() && parameter->value().values() == stored.values());
  }
  model.task->predict(*model.network, "the bank of the river");
}

}  // namespace qkv::fuzz

/// Half of the inputs are a sample with few mutations, which what is read first does not refuse.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned seed) {
  std::mt19937_64 random(seed);
  const auto begin = reinterpret_cast<std::byte*>(data);
  std::vector<std::byte> bytes(begin, begin + size);
  if (size < 96 || random() % 2 == 0) {
    const auto& files = qkv::fuzz::checkpoint_files();
    const auto content = qkv::unseal(files[random() % files.size()]);
    bytes.assign(content.begin(), content.end());
  } else if (random() % 4 == 0) {
    return LLVMFuzzerMutate(data, size, max);
  }
  qkv::mutate(bytes, random);
  bytes.resize(std::min(bytes.size(), max));
  std::ranges::copy(bytes, begin);
  return bytes.size();
}
