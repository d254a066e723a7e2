#include "tests/core/reference/reference.h"

namespace qkv::tests::reference {
namespace {

Oracle same() {
  return [](const Arrays& x) { return x[0]; };
}
Oracle reshape(const Sizes& sizes) {
  return [=](const Arrays& x) { return reshaped(x[0], sizes); };
}
Oracle permute(const Sizes& axes) {
  return [=](const Arrays& x) { return permuted(x[0], axes); };
}
Oracle expand(const Sizes& sizes) {
  return [=](const Arrays& x) -> Array { return xt::broadcast(x[0], sizes); };
}
Oracle slice(std::size_t axis, int begin, int end, int step = 1) {
  return [=](const Arrays& x) { return part(x[0], axis, begin, end, step); };
}
Oracle concatenate(std::size_t axis) {
  return [=](const Arrays& x) -> Array {
    return xt::concatenate(xt::xtuple(x.front(), x.back()), axis);
  };
}
Oracle stack(std::size_t axis) {
  return [=](const Arrays& x) {
    Sizes sizes = sizes_of(x[0]);
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis), x.size());
    return computed(sizes, [&](auto position) {
      const Array& from = x[position[axis]];
      position.erase(position.begin() + static_cast<std::ptrdiff_t>(axis));
      return from.element(position.begin(), position.end());
    });
  };
}
/// The columns of a matrix in this order.
Oracle columns(const std::vector<std::size_t>& order) {
  return [=](const Arrays& x) -> Array { return xt::view(x[0], xt::all(), xt::keep(order)); };
}
Oracle pad(std::size_t axis, std::size_t before, std::size_t after, double value = 0) {
  return [=](const Arrays& x) {
    Sizes sizes = sizes_of(x[0]);
    const std::size_t size = sizes[axis];
    sizes[axis] += before + after;
    return computed(sizes, [&](auto position) {
      if (position[axis] < before || position[axis] >= before + size) return value;
      position[axis] -= before;
      return x[0].element(position.begin(), position.end());
    });
  };
}
Oracle gather(std::size_t axis, const Sizes& sizes, const std::vector<std::size_t>& ids) {
  return [=](const Arrays& x) {
    return computed(sizes, [&](auto position) {
      position[axis] = ids[position[0] * sizes[1] + position[1]];
      return x[0].element(position.begin(), position.end());
    });
  };
}

}  // namespace

const Oracles& shape_oracles() {
  static const Oracles all = {
      {"reshape: inferred size", reshape({3, 4})},
      {"reshape: a shape", reshape({3, 1, 4})},
      {"reshape: empty", reshape({2, 0})},
      {"expand: rows", expand({2, 3, 4})},
      {"expand: scalar", expand({5})},
      {"expand: a size kept", expand({4, 3, 5, 2})},
      {"permute: cycle", permute({1, 2, 0})},
      {"permute: heads", permute({0, 2, 1, 3})},
      {"permute: scalar", same()},
      {"permute: empty", permute({1, 0})},
      {"slice: middle axis", slice(1, 1, 4)},
      {"slice: nothing", slice(1, 2, 2)},
      {"slice: of a permuted",
       [](const Arrays& x) {
         return part(permuted(x[0], {1, 0}), 1, 1, 3);
       }},
      {"slice: a step", slice(1, 1, 7, 2)},
      {"slice: from the end", slice(0, 1, 4, 3)},
      {"concatenate: middle axis", concatenate(1)},
      {"concatenate: one twice", concatenate(0)},
      {"concatenate: an empty part", concatenate(1)},
      {"select_rows: one a sequence",
       [](const Arrays& x) {
         const std::vector<std::size_t> rows = {3, 0, 3};
         return computed({3, 2}, [&](const auto& at) { return x[0](at[0], rows[at[0]], at[1]); });
       }},
      {"stack: first axis", stack(0)},
      {"stack: middle axis", stack(1)},
      {"stack: scalars", stack(0)},
      {"split: swapped parts", columns({4, 5, 2, 3, 0, 1})},
      {"split: product of halves",
       [](const Arrays& x) -> Array { return part(x[0], 0, 0, 2) * part(x[0], 0, 2, 4); }},
      {"split: with a rest", columns({6, 3, 4, 5, 0, 1, 2})},
      {"split: an empty axis", reshape({6, 0})},
      {"split_by_size: with a rest", columns({6, 3, 4, 5, 0, 1, 2})},
      {"split_by_size: one part", same()},
      {"pad: both sides", pad(1, 2, 1)},
      {"pad: a value after", pad(1, 0, 2, 1.5)},
      {"pad: an empty axis", pad(1, 1, 1)},
      {"gather: last axis", gather(1, {2, 3}, {4, 0, 4, 1, 1, 2})},
      {"gather: first axis", gather(0, {1, 2}, {2, 0})},
      {"gather: nothing", gather(0, {0, 2}, {})},
  };
  return all;
}

}  // namespace qkv::tests::reference
