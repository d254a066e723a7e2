// Files of word vectors.
#include <cmath>

#include "layers/pretrained.h"
#include "tests/fuzz/readers/input.h"

void qkv::fuzz::read(std::span<const std::byte> input) {
  const std::vector<std::string> tokens = {"<pad>", "<unk>", "the", "bank"};
  Parameter table(Tensor::zeros({4, 3}));
  load_vectors(file_of(input), tokens, table);
  for (const double value : table.value().values()) demand(std::isfinite(value));
}
