#pragma once

#include <array>
#include <string_view>

#include "core/shape.h"

namespace qkv {

/// The overlap of character n-grams between translations and their references: chrF of the whole
/// set (Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation") as sacreBLEU 2
/// computes it by default ("chrF2"): n-grams of 1 to 6 code points, without white space of Unicode,
/// recall counting twice as much as precision (beta = 2), and no n-grams of outputs whose reference
/// is shorter than n.
class ChrF {
 public:
  /// Both in UTF-8.
  void add(std::string_view output, std::string_view reference);
  /// From 0 to 1. Precision and recall are the means over those n of which both sides have n-grams.
  double value() const;

 private:
  static constexpr std::size_t longest = 6;
  struct Counts {
    Index output = 0, reference = 0, common = 0;
  };
  std::array<Counts, longest> counts_;  ///< of n-grams of n = position + 1
};

}  // namespace qkv
