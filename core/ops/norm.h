#pragma once

#include "core/kernels/rows.h"
#include "core/ops/make.h"

/// What layer and RMS normalisation share; not for users of the library.
namespace qkv {

inline void require_epsilon(std::string_view op, double epsilon) {
  require<ValueError>(epsilon >= 0 && std::isfinite(epsilon),
                      "[{}] epsilon must be finite and not negative, got {}", op, epsilon);
}

/// y = gain xhat + bias, where the bias may be null.
template <class T>
void scale_row(Index width, const T* normalised, const T* gain, const T* bias, T* y) {
  if (bias)
    kernels::map_row(width, y, [=](auto at) { return at(normalised) * at(gain) + at(bias); });
  else
    kernels::map_row(width, y, [=](auto at) { return at(normalised) * at(gain); });
}

/// What a normalisation keeps for backward. The normalised rows serve it better than x, and from
/// them the value can be computed again.
struct Normalised {
  Tensor rows;      ///< xhat, of x's shape
  Tensor inverses;  ///< what each row was multiplied by
  Tensor gain, bias;

  Index width() const { return gain.size(); }
  Index count() const { return inverses.size(); }

  Tensor repeat() const {
    return make(rows.shape(), rows.dtype(), [&]<class T>(T* y) {
      const T *hat = numbers(rows, y), *g = numbers(gain, y),
              *b = bias ? numbers(bias, y) : nullptr;
      parallel_for(cut(count(), 2 * width()), [=, width = width()](Index begin, Index end) {
        for (Index row = begin; row < end; ++row)
          scale_row(width, hat + row * width, g, b, y + row * width);
      });
    });
  }
};

}  // namespace qkv
