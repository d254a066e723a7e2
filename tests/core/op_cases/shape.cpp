#include <algorithm>

#include "tests/core/op_cases.h"

namespace qkv::tests {
namespace {

std::vector<Tensor> reversed(std::vector<Tensor> chunks) {
  std::ranges::reverse(chunks);
  return chunks;
}

}  // namespace

const std::vector<OpCase>& shape_cases() {
  static const std::vector<OpCase> cases = {
      {"reshape",
       "inferred size",
       {{2, 6}},
       [](const In& x) {
         return reshape(x[0], {3, -1});
       }},
      {"permute",
       "cycle",
       {{2, 3, 4}},
       [](const In& x) {
         return permute(x[0], {1, 2, 0});
       }},
      {"permute",
       "heads",
       {{2, 3, 4, 5}},
       [](const In& x) {
         return permute(x[0], {0, 2, 1, -1});
       }},
      {"slice", "middle axis", {{2, 5, 3}}, [](const In& x) { return slice(x[0], 1, 1, 4); }},
      {"slice", "nothing", {{2, 5}}, [](const In& x) { return slice(x[0], -1, 2, 2); }},
      {"concatenate",
       "middle axis",
       {{2, 1, 3}, {2, 4, 3}},
       [](const In& x) { return concatenate(x, 1); }},
      {"concatenate",
       "one twice",
       {{2, 3}},
       [](const In& x) {
         return concatenate({x[0], x[0]}, 0);
       }},
      {"select_rows",
       "one a sequence",
       {{3, 4, 2}},
       [](const In& x) {
         return select_rows(x[0], Indices({3, 0, 3}, {3}));
       }},
      {"reshape",
       "a shape",
       {{2, 6}},
       [](const In& x) {
         return reshape(x[0], Shape{3, 1, 4});
       }},
      {"reshape",
       "empty",
       {{0, 6}},
       [](const In& x) {
         return reshape(x[0], Shape{2, 0});
       }},
      {"expand",
       "rows",
       {{3, 1}},
       [](const In& x) {
         return expand(x[0], {2, 3, 4});
       }},
      {"expand", "scalar", {{}}, [](const In& x) { return expand(x[0], {5}); }},
      {"expand",
       "a size kept",
       {{3, 1, 2}},
       [](const In& x) {
         return expand(x[0], {4, -1, 5, -1});
       }},
      {"permute",
       "scalar",
       {{}},
       [](const In& x) { return permute(x[0], std::initializer_list<int>{}); }},
      {"permute",
       "empty",
       {{2, 0}},
       [](const In& x) {
         return permute(x[0], {1, 0});
       }},
      {"slice",
       "of a permuted",
       {{4, 3}},
       [](const In& x) {
         return slice(permute(x[0], {1, 0}), 1, 1, 3);
       }},
      {"slice", "a step", {{2, 7, 3}}, [](const In& x) { return slice(x[0], 1, 1, 7, 2); }},
      {"slice", "from the end", {{5, 4}}, [](const In& x) { return slice(x[0], 0, -4, -1, 3); }},
      {"concatenate",
       "an empty part",
       {{2, 0}, {2, 3}},
       [](const In& x) { return concatenate(x, -1); }},
      {"stack", "first axis", {{2, 3}, {2, 3}}, [](const In& x) { return stack(x, 0); }},
      {"stack", "middle axis", {{2, 3}, {2, 3}, {2, 3}}, [](const In& x) { return stack(x, 1); }},
      {"stack", "scalars", {{}, {}}, [](const In& x) { return stack(x, -1); }},
      {"split",
       "swapped parts",
       {{2, 6}},
       [](const In& x) { return concatenate(reversed(split(x[0], 1, 3)), 1); }},
      {"split",
       "product of halves",
       {{4, 1, 3}},
       [](const In& x) { return split(x[0], 0, 2)[0] * split(x[0], 0, 2)[1]; }},
      {"split",
       "with a rest",
       {{2, 7}},
       [](const In& x) { return concatenate(reversed(split(x[0], 1, 3)), 1); }},
      {"split",
       "an empty axis",
       {{2, 0}},
       [](const In& x) { return concatenate(split(x[0], 1, 3), 0); }},
      {"split_by_size",
       "with a rest",
       {{2, 7}},
       [](const In& x) { return concatenate(reversed(split_by_size(x[0], -1, 3)), 1); }},
      {"split_by_size",
       "one part",
       {{3, 2}},
       [](const In& x) { return split_by_size(x[0], 0, 5).at(0); }},
      {"pad", "both sides", {{2, 3, 4}}, [](const In& x) { return pad(x[0], 1, 2, 1); }},
      {"pad", "a value after", {{2, 3}}, [](const In& x) { return pad(x[0], -1, 0, 2, 1.5); }},
      {"pad", "an empty axis", {{2, 0}}, [](const In& x) { return pad(x[0], 1, 1, 1); }},
      {"gather",
       "last axis",
       {{2, 5}},
       [](const In& x) {
         return gather(x[0], 1, Indices({4, 0, 4, 1, 1, 2}, {2, 3}));
       }},
      {"gather",
       "first axis",
       {{3, 2}},
       [](const In& x) {
         return gather(x[0], 0, Indices({2, 0}, {1, 2}));
       }},
      {"gather",
       "nothing",
       {{3, 2}},
       [](const In& x) {
         return gather(x[0], 0, Indices({}, {0, 2}));
       }},
  };
  return cases;
}

}  // namespace qkv::tests
