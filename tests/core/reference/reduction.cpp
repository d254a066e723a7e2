#include "tests/core/reference/reference.h"

namespace qkv::tests::reference {
namespace {

using Reduce = Array (*)(const Array&, const Sizes&, bool);

/// Over these axes of the input, or over all.
Oracle over(Reduce reduce, const Sizes& axes, bool keep = false) {
  return [=](const Arrays& x) { return reduce(x[0], axes, keep); };
}
Oracle over_all(Reduce reduce, bool keep = false) {
  return [=](const Arrays& x) { return reduce(x[0], all_axes(x[0]), keep); };
}

Array variance_over(const Array& x, const Sizes& axes, bool keep) {
  const Array distances = x - mean_over(x, axes, true);
  return mean_over(xt::square(distances), axes, keep);
}

Array logsumexp(const Array& x, const Sizes& axes, bool keep) {
  const Array largest = max_over(x, axes, true);
  const Array sums = sum_over(xt::exp(x - largest), axes, true);
  const Array y = largest + xt::log(sums);
  return sum_over(y, axes, keep);  // over axes of size 1
}

Oracle topk(int count, std::size_t axis) {
  return [=](const Arrays& x) {
    if (count == 0) return part(x[0], axis, 0, 0);
    const Array ascending = xt::sort(x[0], static_cast<std::ptrdiff_t>(axis));
    const auto size = static_cast<int>(x[0].shape(axis));
    Sizes sizes = sizes_of(x[0]);
    sizes[axis] = static_cast<std::size_t>(count);
    return computed(sizes, [&](auto position) {
      position[axis] = static_cast<std::size_t>(size - 1) - position[axis];
      return ascending.element(position.begin(), position.end());
    });
  };
}

Oracle cumulative_sum(std::ptrdiff_t axis) {
  return [=](const Arrays& x) -> Array {
    if (x[0].size() == 0) return x[0];
    return xt::cumsum(x[0], axis);
  };
}

/// Over the first `lengths[b]` rows of each sequence; zeros where there are none.
Oracle masked(Reduce reduce, const std::vector<std::size_t>& lengths) {
  return [=](const Arrays& x) {
    Array y = filled({x[0].shape(0), x[0].shape(2)}, 0);
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      if (lengths[b] == 0) continue;
      const Array rows = xt::view(x[0], b, xt::range(std::size_t{0}, lengths[b]));
      xt::view(y, b) = reduce(rows, {0}, false);
    }
    return y;
  };
}

}  // namespace

const Oracles& reduction_oracles() {
  static const Oracles all = {
      {"sum: all", over_all(sum_over)},
      {"sum: first axis", over(sum_over, {0})},
      {"sum: last axis kept", over(sum_over, {2}, true)},
      {"sum: two axes apart", over(sum_over, {0, 2})},
      {"sum: two axes apart, kept", over(sum_over, {1, 3}, true)},
      {"sum: last two axes", over(sum_over, {1, 2})},
      {"sum: an empty axis", over(sum_over, {1})},
      {"sum: scalar", over_all(sum_over)},
      {"mean: all", over_all(mean_over)},
      {"mean: middle axis", over(mean_over, {1})},
      {"mean: two axes apart", over(mean_over, {0, 2})},
      {"mean: all, kept", over_all(mean_over, true)},
      {"masked_mean: one empty", masked(mean_over, {4, 0, 2})},
      {"variance: all", over_all(variance_over)},
      {"variance: rows, sample",
       [](const Arrays& x) -> Array { return variance_over(x[0], {1}, true) * 5 / 4; }},
      {"variance: two axes apart", over(variance_over, {0, 2})},
      {"variance: of one", over(variance_over, {1})},
      {"max: all", over_all(max_over)},
      {"max: first axis", over(max_over, {0})},
      {"max: two axes apart, kept", over(max_over, {0, 2}, true)},
      {"max: size 1", over(max_over, {1})},
      {"min: all", over_all(min_over)},
      {"min: middle axis", over(min_over, {1})},
      {"min: of no rows", over(min_over, {1})},
      {"topk: last axis", topk(3, 1)},
      {"topk: middle axis", topk(5, 1)},
      {"topk: none", topk(0, 1)},
      {"logsumexp: all", over_all(logsumexp)},
      {"logsumexp: middle axis, kept", over(logsumexp, {1}, true)},
      {"logsumexp: large", over(logsumexp, {1})},
      {"logsumexp: size 1", over(logsumexp, {1})},
      {"cumulative_sum: last axis", cumulative_sum(1)},
      {"cumulative_sum: first axis", cumulative_sum(0)},
      {"cumulative_sum: empty", cumulative_sum(1)},
      {"masked_max: one empty", masked(max_over, {4, 0, 2})},
      {"masked_max: size 1", masked(max_over, {1})},
  };
  return all;
}

}  // namespace qkv::tests::reference
