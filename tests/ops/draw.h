#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "core/random.h"

namespace qkv::fuzz {

/// The source of everything that is drawn for a case: a sequence of choices, of which 0 is always
/// the simplest. The sequence can be changed and drawn from again, which is how failing cases
/// shrink and stay valid (MacIver & Donaldson 2020, "Test-Case Reduction via Test-Case
/// Generation").
class Draw {
 public:
  /// Chooses at random.
  Draw(std::uint64_t seed, std::uint64_t index) : random_(seed, Purpose::testing, index) {}
  /// Makes these choices, and then the simplest.
  explicit Draw(std::vector<std::uint32_t> choices)
      : random_(0, Purpose::testing), given_(std::move(choices)), replays_(true) {}

  /// A choice in [0, count).
  std::uint32_t below(std::uint32_t count) {
    const std::size_t i = made_.size();
    const auto choice =
        replays_ ? (i < given_.size() ? std::min(given_[i], count - 1) : 0)
                 : static_cast<std::uint32_t>((std::uint64_t{random_.bits(i)} * count) >> 32);
    made_.push_back(choice);
    return choice;
  }
  Index index_below(Index count) { return below(static_cast<std::uint32_t>(count)); }
  /// True in so many of a hundred cases; false is simplest.
  bool chance(std::uint32_t percent) { return below(100) >= 100 - percent; }
  /// One of a list, whose first is the simplest.
  template <class T>
  T pick(std::initializer_list<T> from) {
    return from.begin()[below(static_cast<std::uint32_t>(from.size()))];
  }

  const std::vector<std::uint32_t>& choices() const { return made_; }

 private:
  Random random_;
  std::vector<std::uint32_t> given_, made_;
  bool replays_ = false;
};

}  // namespace qkv::fuzz
