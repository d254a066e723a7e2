#include "train/communicator.h"

#include <algorithm>
#include <cstdlib>

namespace qkv {

void Communicator::all_to_all(std::span<const std::byte> sent, std::span<const Index>,
                              std::span<std::byte> received, std::span<const Index>) const {
  std::ranges::copy(sent, received.begin());
}

void Communicator::end_all(int exit_code) const {
  std::_Exit(exit_code);
}

}  // namespace qkv
