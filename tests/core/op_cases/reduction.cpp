#include "tests/core/op_cases.h"

namespace qkv::tests {

const std::vector<OpCase>& reduction_cases() {
  static const std::vector<OpCase> cases = {
      {"sum", "all", {{2, 3}}, [](const In& x) { return sum(x[0]); }},
      {"sum", "first axis", {{2, 3, 4}}, [](const In& x) { return sum(x[0], 0); }},
      {"sum", "last axis kept", {{2, 3, 4}}, [](const In& x) { return sum(x[0], -1, true); }},
      {"mean", "all", {{2, 3}}, [](const In& x) { return mean(x[0]); }},
      {"mean", "middle axis", {{2, 3, 4}}, [](const In& x) { return mean(x[0], 1); }},
      {"masked_mean",
       "one empty",
       {{3, 4, 2}},
       [](const In& x) {
         return masked_mean(x[0], Indices({4, 0, 2}, {3}));
       }},
      {"sum",
       "two axes apart",
       {{2, 3, 4}},
       [](const In& x) {
         return sum(x[0], {0, 2});
       }},
      {"sum",
       "two axes apart, kept",
       {{2, 3, 4, 5}},
       [](const In& x) {
         return sum(x[0], {-1, 1}, true);
       }},
      {"sum",
       "last two axes",
       {{2, 3, 4}},
       [](const In& x) {
         return sum(x[0], {1, 2});
       }},
      {"sum", "an empty axis", {{2, 0}}, [](const In& x) { return sum(x[0], 1); }},
      {"sum", "scalar", {{}}, [](const In& x) { return sum(x[0]); }},
      {"mean",
       "two axes apart",
       {{2, 3, 4}},
       [](const In& x) {
         return mean(x[0], {2, 0});
       }},
      {"mean", "all, kept", {{2, 3}}, [](const In& x) { return mean(x[0], {}, true); }},
      {"variance", "all", {{4, 5}}, [](const In& x) { return variance(x[0]); }},
      {"variance",
       "rows, sample",
       {{3, 5}},
       [](const In& x) { return variance(x[0], -1, true, 1); }},
      {"variance",
       "two axes apart",
       {{2, 3, 4}},
       [](const In& x) {
         return variance(x[0], {0, 2});
       }},
      {"variance", "of one", {{3, 1}}, [](const In& x) { return variance(x[0], 1); }},
      {"max", "all", {{4, 5}}, [](const In& x) { return max(x[0]); }},
      {"max", "first axis", {{4, 5}}, [](const In& x) { return max(x[0], 0); }},
      {"max",
       "two axes apart, kept",
       {{2, 3, 4}},
       [](const In& x) {
         return max(x[0], {0, 2}, true);
       }},
      {"max", "size 1", {{3, 1}}, [](const In& x) { return max(x[0], -1); }},
      {"min", "all", {{4, 5}}, [](const In& x) { return min(x[0]); }},
      {"min", "middle axis", {{2, 3, 4}}, [](const In& x) { return min(x[0], 1); }},
      {"min", "of no rows", {{0, 3}}, [](const In& x) { return min(x[0], 1); }},
      {"topk", "last axis", {{3, 7}}, [](const In& x) { return topk(x[0], 3).values; }},
      {"topk", "middle axis", {{2, 5, 3}}, [](const In& x) { return topk(x[0], 5, 1).values; }},
      {"topk", "none", {{2, 3}}, [](const In& x) { return topk(x[0], 0).values; }},
      {"logsumexp", "all", {{4, 5}}, [](const In& x) { return logsumexp(x[0]); }},
      {"logsumexp",
       "middle axis, kept",
       {{2, 21, 3}},
       [](const In& x) { return logsumexp(x[0], 1, true); }},
      {"logsumexp", "large", {{3, 19}}, [](const In& x) { return logsumexp(x[0], -1); }, -900, 900},
      {"logsumexp", "size 1", {{3, 1}}, [](const In& x) { return logsumexp(x[0], -1); }},
      {"cumulative_sum",
       "last axis",
       {{2, 5}},
       [](const In& x) { return cumulative_sum(x[0], -1); }},
      {"cumulative_sum",
       "first axis",
       {{5, 2, 3}},
       [](const In& x) { return cumulative_sum(x[0], 0); }},
      {"cumulative_sum", "empty", {{2, 0}}, [](const In& x) { return cumulative_sum(x[0], 1); }},
      {"masked_max",
       "one empty",
       {{3, 4, 2}},
       [](const In& x) {
         return masked_max(x[0], Indices({4, 0, 2}, {3}));
       }},
      {"masked_max",
       "size 1",
       {{1, 1, 3}},
       [](const In& x) { return masked_max(x[0], Indices({1}, {1})); }},
  };
  return cases;
}

}  // namespace qkv::tests
