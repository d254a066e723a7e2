#include "inspect/block_average.h"

#include <algorithm>

namespace qkv {

Picture block_average(const Tensor& matrix, Index most_rows, Index most_columns) {
  const Index columns = matrix.rank() ? matrix.dim(-1) : 1, rows = matrix.size() / columns;
  const auto values = matrix.values();
  Picture result{{}, std::min(rows, most_rows), std::min(columns, most_columns)};
  for (Index r = 0; r < result.rows; ++r)
    for (Index c = 0; c < result.columns; ++c) {
      double sum = 0;
      const Index r0 = r * rows / result.rows, r1 = (r + 1) * rows / result.rows;
      const Index c0 = c * columns / result.columns, c1 = (c + 1) * columns / result.columns;
      for (Index i = r0; i < r1; ++i)
        for (Index j = c0; j < c1; ++j) sum += values[static_cast<std::size_t>(i * columns + j)];
      result.values.push_back(sum / static_cast<double>((r1 - r0) * (c1 - c0)));
    }
  return result;
}

}  // namespace qkv
