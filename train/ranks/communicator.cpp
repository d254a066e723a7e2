#include "train/ranks/communicator.h"

#include <algorithm>

namespace qkv {

void Communicator::all_to_all(std::span<const std::byte> sent, std::span<const Index>,
                              std::span<std::byte> received, std::span<const Index>) const {
  std::ranges::copy(sent, received.begin());
}

}  // namespace qkv
