// Checkpoints behind a right seal and of the length that they state, so that the structure of the
// HDF5 file and what it holds are attacked. Inputs are their bytes without the seal.
#include "train/storage/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "tests/fuzz/readers/input.h"
#include "tests/support/mutations.h"
#include "train/check_checkpoint.h"
#include "train/config/config.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max);

namespace qkv::fuzz {
namespace {

constexpr std::size_t length_at = 40;  // in the superblock

Checkpoint sample(bool long_token) {
  Checkpoint checkpoint;
  checkpoint.step = 500;
  checkpoint.config = to_toml(parse_config("name = \"bank\"\n[task]\ntrain = \"x\"\n", "sample"));
  checkpoint.model["encoder.w_q.weight"] = Tensor::from({1.0f, -2.5f, 3.0f, 0.1f}, {2, 2});
  checkpoint.model["head.bias"] = Tensor::from({1.0, 1e-300}, {2});
  checkpoint.optimizer["first_moment.head.bias"] = Tensor::scalar(0.25, DType::float64);
  checkpoint.vocabulary["tokens"] = {"<pad>", "<unk>", "bank"};
  if (long_token)
    for (int i = 0; i < 300; ++i)
      checkpoint.vocabulary["tokens"].push_back(std::string(i ? 1 : 4000, 'x'));
  checkpoint.progress = {{"interval_loss", 0},
                         {"interval_steps", 0},
                         {"best_score", 0.5},
                         {"best_loss", 1},
                         {"best_step", 400}};
  checkpoint.metrics = "{\"step\":400,\"split\":\"valid\",\"loss\":1}\n";
  checkpoint.data_hash = "0123456789abcdef";
  return checkpoint;
}

/// The bytes of a sample without its seal.
std::vector<std::byte> content_of(const Checkpoint& checkpoint) {
  const auto file = file_of({});
  write_checkpoint(file, checkpoint);
  const auto bytes = read_file(file, 1 << 24);
  const auto content = unseal(bytes);
  return {content.begin(), content.end()};
}

}  // namespace

void read(std::span<const std::byte> input) {
  std::vector<std::byte> bytes(input.begin(), input.end());
  const std::uint64_t length = bytes.size();
  if (length >= length_at + sizeof length)
    std::memcpy(bytes.data() + length_at, &length, sizeof length);
  seal(bytes);
  const auto file = file_of(bytes);
  const Checkpoint checkpoint = read_checkpoint(file);
  best_step_of(checkpoint);
  check_checkpoint(checkpoint, parse_config(checkpoint.config, "input"), file);
}

}  // namespace qkv::fuzz

/// A mutation of nothing is a sample.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned seed) {
  static const std::vector<std::byte> samples[] = {qkv::fuzz::content_of(qkv::fuzz::sample(false)),
                                                   qkv::fuzz::content_of(qkv::fuzz::sample(true))};
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(reinterpret_cast<std::byte*>(data),
                               reinterpret_cast<std::byte*>(data) + size);
  if (size < 96)
    bytes = samples[random() % 2];
  else if (random() % 4 == 0)
    return LLVMFuzzerMutate(data, size, max);
  qkv::mutate(bytes, random);
  bytes.resize(std::min(bytes.size(), max));
  std::ranges::copy(bytes, reinterpret_cast<std::byte*>(data));
  return bytes.size();
}
