#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "inspect/cpp_model/layers.h"

namespace qkv_model {

/// Convolutions over 3, 4 and 5 tokens side by side, each with relu (Kim 2014).
class Convolution {
 public:
  Convolution() {
    for (std::size_t i = 0; i < description().layers; ++i)
      for (std::size_t kernel = 0; kernel < kernels; ++kernel)
        kernels_.emplace_back("convolution.layers." + std::to_string(i) + ".kernels." +
                              std::to_string(kernel));
  }

  /// One vector for each token, [time, width].
  Matrix operator()(const Ids& ids) const {
    Matrix x = embedded(ids);
    for (std::size_t layer = 0; layer < description().layers; ++layer) {
      Matrix y(x.rows(), x.width);
      std::size_t begin = 0;
      for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
        const Linear& of = kernels_[layer * kernels + kernel];
        convolve(x, of, begin, y);
        begin += of.weight.rows;
      }
      x = std::move(y);
    }
    return x;
  }

  /// The largest value of each column.
  Matrix sentence(const Matrix& x) const {
    Matrix largest = x.one_row(0);
    for (std::size_t t = 1; t < x.rows(); ++t)
      for (std::size_t i = 0; i < x.width; ++i)
        largest.values[i] = std::max(largest.values[i], x.row(t)[i]);
    return largest;
  }

 private:
  static constexpr std::size_t kernels = 3;

  /// Weights [out, in, size]; the text has zeros around it. Writes to y from column `begin` on.
  static void convolve(const Matrix& x, const Linear& kernel, std::size_t begin, Matrix& y) {
    const std::size_t size = kernel.weight.columns / x.width, before = (size - 1) / 2;
    for (std::size_t t = 0; t < x.rows(); ++t) {
      Vector window(kernel.weight.columns);
      for (std::size_t k = 0; k < size; ++k) {
        if (t + k < before || t + k - before >= x.rows()) continue;
        for (std::size_t i = 0; i < x.width; ++i) window[i * size + k] = x.row(t + k - before)[i];
      }
      for (std::size_t i = 0; i < kernel.weight.rows; ++i)
        y.row(t)[begin + i] = std::max(
            0.0, dot(kernel.weight.row(i), window.data(), window.size()) + kernel.bias.values[i]);
    }
  }

  std::vector<Linear> kernels_;  ///< of all layers
};

}  // namespace qkv_model
