#include "tests/core/op_cases.h"

namespace qkv::tests {
namespace {

const Tensor class_weights = Tensor::from({0.5, 2, 1.25}, {3});

}  // namespace

const std::vector<OpCase>& loss_cases() {
  static const std::vector<OpCase> cases = {
      {"cross_entropy",
       "one ignored",
       {{4, 5}},
       [](const In& x) {
         return cross_entropy(x[0], Indices({2, 0, -1, 4}, {4}));
       }},
      {"cross_entropy",
       "sequences",
       {{2, 3, 4}},
       [](const In& x) {
         return cross_entropy(x[0], Indices({2, 0, 3, 1, 1, -1}, {2, 3}));
       }},
      {"cross_entropy",
       "smoothed",
       {{4, 5}},
       [](const In& x) {
         return cross_entropy(x[0], Indices({2, 0, -1, 4}, {4}),
                              {.label_smoothing = 0.1, .class_weights = {}});
       }},
      {"cross_entropy",
       "weighted",
       {{4, 3}},
       [](const In& x) {
         return cross_entropy(x[0], Indices({2, 0, 1, 2}, {4}), {.class_weights = class_weights});
       }},
      {"cross_entropy",
       "smoothed, weighted and ignored",
       {{2, 2, 3}},
       [](const In& x) {
         return cross_entropy(
             x[0], Indices({2, 0, 1, 2}, {2, 2}),
             {.label_smoothing = 0.2, .class_weights = class_weights, .ignore_index = 0});
       }},
      {"cross_entropy",
       "each row",
       {{2, 2, 3}},
       [](const In& x) {
         return cross_entropy(x[0], Indices({2, 0, -1, 2}, {2, 2}), {.reduction = Reduction::none});
       }},
      {"cross_entropy",
       "sum, smoothed and weighted",
       {{4, 3}},
       [](const In& x) {
         return cross_entropy(
             x[0], Indices({2, 0, 1, 2}, {4}),
             {.label_smoothing = 0.2, .class_weights = class_weights, .reduction = Reduction::sum});
       }},
      {"cross_entropy",
       "each row, smoothed and weighted",
       {{4, 3}},
       [](const In& x) {
         return cross_entropy(x[0], Indices({2, 0, 1, 2}, {4}),
                              {.label_smoothing = 0.2,
                               .class_weights = class_weights,
                               .ignore_index = 1,
                               .reduction = Reduction::none});
       }},
      {"cross_entropy",
       "one class",
       {{2, 1}},
       [](const In& x) {
         return cross_entropy(x[0], Indices({0, 0}, {2}));
       }},
      {"binary_cross_entropy",
       "matrix",
       {{3, 4}, {3, 4}},
       [](const In& x) { return binary_cross_entropy(x[0], x[1]); },
       0.1,
       0.9},
      {"binary_cross_entropy",
       "size 1",
       {{1}, {1}},
       [](const In& x) { return binary_cross_entropy(x[0], x[1]); },
       0.1,
       0.9},
      {"binary_cross_entropy",
       "each element",
       {{3, 4}, {3, 4}},
       [](const In& x) { return binary_cross_entropy(x[0], x[1], Reduction::none); },
       0.1,
       0.9},
      {"binary_cross_entropy_with_logits",
       "sum",
       {{3, 4}, {3, 4}},
       [](const In& x) {
         return binary_cross_entropy_with_logits(x[0], sigmoid(x[1]), Reduction::sum);
       }},
      {"binary_cross_entropy_with_logits",
       "weighted",
       {{3, 4}, {3, 4}},
       [](const In& x) {
         const Tensor weight = Tensor::from({0.5, 2, 1, 3}, {4}, x[0].dtype());
         return binary_cross_entropy_with_logits(x[0], sigmoid(x[1]), Reduction::mean, weight);
       }},
      {"binary_cross_entropy_with_logits",
       "weighted, each element, large",
       {{7}, {7}},
       [](const In& x) {
         return binary_cross_entropy_with_logits(x[0], sigmoid(x[1]), Reduction::none,
                                                 Tensor::scalar(3, x[0].dtype()));
       },
       -60,
       60},
      {"binary_cross_entropy_with_logits",
       "matrix",
       {{3, 4}, {3, 4}},
       [](const In& x) { return binary_cross_entropy_with_logits(x[0], sigmoid(x[1])); }},
      {"binary_cross_entropy_with_logits",
       "large",
       {{7}, {7}},
       [](const In& x) { return binary_cross_entropy_with_logits(x[0], sigmoid(x[1])); },
       -60,
       60},
      {"mean_squared_error",
       "matrix",
       {{3, 4}, {3, 4}},
       [](const In& x) { return mean_squared_error(x[0], x[1]); }},
      {"mean_squared_error",
       "each element",
       {{3, 4}, {3, 4}},
       [](const In& x) { return mean_squared_error(x[0], x[1], Reduction::none); }},
      {"mean_squared_error",
       "sum",
       {{3, 4}, {3, 4}},
       [](const In& x) { return mean_squared_error(x[0], x[1], Reduction::sum); }},
      {"mean_squared_error",
       "scalar",
       {{}, {}},
       [](const In& x) { return mean_squared_error(x[0], x[1]); }},
  };
  return cases;
}

}  // namespace qkv::tests
