#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernels/rows.h"
#include "core/random.h"

namespace qkv::detail {

/// The mask of dropout: 0 with a probability in (0, 1), else 1 / (1 - probability).
template <class T>
class DropoutMask {
 public:
  DropoutMask(double probability, const Random& random)
      : random_(random),
        threshold_(
            static_cast<std::uint32_t>(std::min(std::ceil(probability * 0x1p32), 0x1p32 - 1))),
        kept_(static_cast<T>(1 / (1 - probability))) {}

  /// Writes elements [first, first + n).
  void write(T* to, Index first, Index n) const {
    std::array<std::uint32_t, 256> bits;
    const T kept = kept_;  // unlike the member, no element of `to` for the compiler
    for (Index begin = 0; begin < n; begin += std::ssize(bits)) {
      const Index count = std::min<Index>(std::ssize(bits), n - begin);
      random_.bits(static_cast<std::uint64_t>(first + begin),
                   std::span(bits).first(static_cast<std::size_t>(count)));
      for (Index i = 0; i < count; ++i)
        to[begin + i] = bits[static_cast<std::size_t>(i)] < threshold_ ? T{0} : kept;
    }
  }

 private:
  Random random_;
  std::uint32_t threshold_;
  T kept_;
};

/// A mask [matrices, rows, columns] that is applied to parts of rows. Small matrices, one after the
/// other, are written whole, as random values are drawn fastest where many follow each other.
template <class T>
class MatrixDropout {
 public:
  MatrixDropout(Index rows, Index columns, double probability, const Random& random)
      : mask_(probability, random), rows_(rows), columns_(columns) {}

  /// Multiplies n elements of a row from a column on. No row from `end_row` on follows in its
  /// matrix.
  void apply(T* x, Index n, Index matrix, Index row, Index column, Index end_row) {
    const Index first = matrix * rows_ * columns_, start = row * columns_ + column;
    const bool is_small = end_row * columns_ <= std::ssize(written_);
    if (!is_small)
      mask_.write(written_.data(), first + start, n);
    else if (matrix != matrix_)
      mask_.write(written_.data(), first, end_row * columns_);
    matrix_ = matrix;
    const T* by = written_.data() + (is_small ? start : 0);
    kernels::map_row(n, x, [=](auto at) { return at(x) * at(by); });
  }

 private:
  DropoutMask<T> mask_;
  Index rows_, columns_;
  Index matrix_ = -1;  ///< of which `written_` has the mask
  std::array<T, 4096> written_;
};

}  // namespace qkv::detail
