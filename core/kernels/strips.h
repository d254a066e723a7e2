#pragma once

#include <vector>

#include "core/memory.h"
#include "core/shape.h"
#include "core/weight_format.h"

namespace qkv::kernels {

/// A weight matrix W [out, in] in strips of a vector's width of rows: vector i of a strip has
/// element i of each of its rows (in int8, elements 4 i to 4 i + 3), and zeros beyond the last row.
/// A product of a single row reads each weight once, so that the order in memory decides how long
/// it takes.
class Strips {
 public:
  /// At most so many rows are multiplied at once.
  static constexpr Index most_rows = 4;

  Strips(WeightFormat format, const float* weight, Index out, Index in);

  /// y[m x out] = x[m x in] W^T, or y + x W^T where it `adds`. Float32 elements give the bits of
  /// our own products (gemm_own.cpp); a row of y does not depend on the others.
  void multiply(Index m, const float* x, bool adds, float* y) const;

 private:
  /// Packs a strip of `rows` rows, the first of which is `row`.
  void pack_float32(const float* weight, Index rows, Index row);
  void pack_int8(const float* weight, Index rows, Index row);
  /// The strip that begins with a row.
  std::byte* strip(Index row) const;
  /// Columns `begin` to `end` - 1 of `m` rows of y, at most `most_rows`.
  void multiply_columns(Index begin, Index end, Index m, const float* x, bool adds, float* y) const;

  WeightFormat format_;
  Index out_, in_;
  Index vectors_;  ///< vectors of a strip
  Index stride_;   ///< elements from one to the next
  detail::Buffer elements_;
  std::vector<float> scales_;  ///< empty, or by row
};

}  // namespace qkv::kernels
