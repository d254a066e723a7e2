#include <algorithm>

#include "core/autograd.h"
#include "core/ops.h"
#include "core/ops/create.h"

namespace qkv {

using namespace detail;

Tensor embedding(const Tensor& weight, const Indices& ids, std::optional<Index> padding_idx) {
  require(weight.rank() == 2, "[embedding] needs a table (V, D), got {}", weight.shape());
  const Index rows = weight.dim(0), width = weight.dim(1);
  for (const auto id : ids.data())
    require<IndexError>(id >= 0 && id < rows, "[embedding] id {} is outside the table of {} rows",
                        id, rows);
  require<IndexError>(!padding_idx || (*padding_idx >= 0 && *padding_idx < rows),
                      "[embedding] padding_idx {} is outside the table of {} rows",
                      padding_idx.value_or(0), rows);
  std::vector<Index> sizes(ids.shape().begin(), ids.shape().end());
  sizes.push_back(width);
  const Tensor y = create(Shape(sizes), weight.dtype(), [&]<class T>(T* to) {
    for (const auto id : ids.data()) to = std::copy_n(elements(weight, to) + id * width, width, to);
  });
  return record("embedding", y, {weight},
                [=, shape = weight.shape()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, create(shape, dy.dtype(), [&]<class T>(T* table) {
                               std::fill_n(table, shape.size(), T{0});
                               const T* row = elements(dy, table);
                               for (const auto id : ids.data()) {
                                 for (Index i = 0; i < width; ++i) table[id * width + i] += row[i];
                                 row += width;
                               }
                               if (padding_idx)
                                 std::fill_n(table + *padding_idx * width, width, T{0});
                             }));
                });
}

}  // namespace qkv
