#pragma once

#include "core/memory.h"
#include "core/shape.h"

namespace qkv::kernels {

/// A weight matrix W [out, in] in strips of a vector's width of rows: vector i of a strip has
/// element i of each of its rows, and zeros beyond the last row. A product of a single row reads
/// each weight once, so that the order in memory decides how long it takes.
class Strips {
 public:
  /// At most so many rows pay for it; more read each weight several times from a register.
  static constexpr Index most_rows = 4;

  Strips(const float* weight, Index out, Index in);

  /// y[m x out] = x[m x in] W^T, or y + x W^T where it `adds`, for at most `most_rows` rows, with
  /// the bits of our own products (gemm_own.cpp).
  void multiply(Index m, const float* x, bool adds, float* y) const;

 private:
  float* elements() const { return reinterpret_cast<float*>(buffer_.get()); }

  Index out_, in_;
  detail::Buffer buffer_;
};

}  // namespace qkv::kernels
