#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/xtensor.h"

/// The ops of core/ops.h once more, in naive xtensor expressions and loops in float64 that share
/// no code with the library.
namespace qkv::tests::reference {

using Array = xt::xarray<double>;
using Arrays = std::vector<Array>;
using Sizes = std::vector<std::size_t>;

/// The value that a row of the table of op samples must have, computed from its inputs. A function
/// that returns an expression instead of an array does not compile: it would refer to dead locals.
class Oracle {
 public:
  template <class F>
  requires std::same_as<std::invoke_result_t<const F&, const Arrays&>, Array> Oracle(F value)
      : value_(std::move(value)) {}
  Array operator()(const Arrays& inputs) const { return value_(inputs); }

 private:
  std::function<Array(const Arrays&)> value_;
};

/// By the label of the row. To add an op, add the oracles of its rows to its family: a test fails
/// for a row without an oracle.
using Oracles = std::map<std::string, Oracle>;
const Oracles& elementwise_oracles();
const Oracles& shape_oracles();
const Oracles& reduction_oracles();
const Oracles& layer_oracles();
const Oracles& recurrent_oracles();
const Oracles& loss_oracles();
/// All of them.
const Oracles& oracles();

// Helpers. They alone evaluate reducers (core/xtensor.h says why); their names differ from those of
// xtensor, which a call with arrays would find, too.

Sizes sizes_of(const Array& x);
Array filled(const Sizes& sizes, double value);
/// The array whose element at `position` is f(position).
template <class F>
Array computed(const Sizes& sizes, F f) {
  Array y = filled(sizes, 0);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto position = xt::unravel_index(i, sizes, xt::layout_type::row_major);
    y.data()[i] = f(Sizes(position.begin(), position.end()));
  }
  return y;
}
Array reshaped(Array x, const Sizes& sizes);
Array permuted(const Array& x, const Sizes& axes);
/// Elements begin, begin + step, ... before `end` along `axis`.
Array part(const Array& x, std::size_t axis, int begin, int end, int step = 1);

Sizes all_axes(const Array& x);
Array sum_over(const Array& x, const Sizes& axes, bool keep = false);
Array mean_over(const Array& x, const Sizes& axes, bool keep = false);
Array max_over(const Array& x, const Sizes& axes, bool keep = false);
Array min_over(const Array& x, const Sizes& axes, bool keep = false);

Array sigmoid(const Array& x);
Array softplus(const Array& x);
Array gelu(const Array& x);
Array log_softmax(const Array& x, std::size_t axis);
/// Matrix product over the last two axes; the others broadcast.
Array product(const Array& a, const Array& b);
/// The last two axes exchanged.
Array transposed(const Array& x);

}  // namespace qkv::tests::reference
