#include "inspect/block_average.h"

#include <algorithm>
#include <numeric>

#include "core/xtensor.h"

namespace qkv {

Tensor block_average(const Tensor& matrix, Index most_rows, Index most_columns) {
  using Matrix = xt::xtensor<double, 2>;
  const Index columns = matrix.rank() ? matrix.dim(-1) : 1, rows = matrix.size() / columns;
  const Tensor values = matrix.detach().to(DType::float64).with_shape({rows, columns});
  const auto from = xtensor_view<double, 2>(values);
  const auto begin = [](std::size_t block, Index size, std::size_t blocks) {
    return static_cast<Index>(block) * size / static_cast<Index>(blocks);
  };
  Matrix result = Matrix::from_shape({static_cast<std::size_t>(std::min(rows, most_rows)),
                                      static_cast<std::size_t>(std::min(columns, most_columns))});
  for (std::size_t r = 0; r < result.shape(0); ++r)
    for (std::size_t c = 0; c < result.shape(1); ++c) {
      const Matrix block = xt::view(
          from, xt::range(begin(r, rows, result.shape(0)), begin(r + 1, rows, result.shape(0))),
          xt::range(begin(c, columns, result.shape(1)), begin(c + 1, columns, result.shape(1))));
      result(r, c) =
          std::accumulate(block.begin(), block.end(), 0.0) / static_cast<double>(block.size());
    }
  return from_xtensor(result);
}

}  // namespace qkv
