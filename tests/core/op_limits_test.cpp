#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/ops.h"

namespace qkv::tests::op_limits_test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

Tensor ones(const Shape& shape) {
  return Tensor::full(shape, 1);
}

}  // namespace

TEST_CASE("comparing, choosing, stacking and expanding shapes that do not fit shows both") {
  CHECK_THROWS_WITH_AS(
      less(ones({2, 3}), ones({4})),
      "[less] shapes (2, 3) and (4,) do not broadcast: sizes 3 and 4 differ and neither is 1",
      ShapeError);
  CHECK_THROWS_AS(where(ones({5}), ones({2, 3}), ones({3})), ShapeError);
  CHECK_THROWS_AS(where(Tensor::zeros({3}, DType::float64), ones({3}), ones({3})), TypeError);
  CHECK_THROWS_WITH_AS(masked_fill(ones({3}), ones({2, 3}), 0),
                       "[masked_fill] mask (2, 3) does not broadcast to x (3,)", ShapeError);
  CHECK_THROWS_WITH_AS(stack({ones({2}), ones({3})}, 0), "[stack] shapes (2,) and (3,) differ",
                       ShapeError);
  CHECK_THROWS_AS(stack({}, 0), ShapeError);
  CHECK_THROWS_WITH_AS(expand(ones({2, 3}), {3}),
                       "[expand] (2, 3) does not broadcast to the smaller (3,)", ShapeError);
  CHECK_THROWS_WITH_AS(expand(ones({2, 3}), {-1, 2, 3}),
                       "[expand] size -1 of axis 0 needs an axis of x (2, 3) that it keeps",
                       ShapeError);
  CHECK_THROWS_WITH_AS(matmul(ones({2, 3, 4}), ones({5, 4, 6})),
                       "[matmul] leading axes of (2, 3, 4) and (5, 4, 6) do not broadcast",
                       ShapeError);
}

TEST_CASE("layers' and losses' operands that do not fit are shown") {
  CHECK_THROWS_AS(rms_norm(ones({2, 3}), ones({2})), ShapeError);
  CHECK_THROWS_WITH_AS(conv1d(ones({2, 5, 3}), ones({4, 2, 3})),
                       "[conv1d] needs x (B, T, in) and weight (out, in, K), got (2, 5, 3) and (4, "
                       "2, 3)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(conv1d(ones({1, 2, 3}), ones({4, 3, 3})),
                       "[conv1d] sequences of x (1, 2, 3) with padding 0 are shorter than the "
                       "kernel of weight (4, 3, 3) with dilation 1; pad them to 3",
                       ShapeError);
  CHECK_THROWS_WITH_AS(
      mean_squared_error(ones({2, 1}), ones({2})),
      "[mean_squared_error] predictions (2, 1) and targets (2,) must have one shape", ShapeError);
  CHECK_THROWS_AS(cross_entropy(ones({2, 3}), Indices({0, 1}, {2}), {.class_weights = ones({2})}),
                  ShapeError);
  CHECK_THROWS_AS(cross_entropy(ones({2, 3}), Indices({0, 1, 2}, {3}), {}), ShapeError);
  CHECK_THROWS_AS(masked_max(ones({2, 3}), Indices({1, 1}, {2})), ShapeError);
  CHECK_THROWS_AS(gather(ones({2, 3}), 1, Indices({0, 0, 0}, {3, 1})), ShapeError);
}

TEST_CASE("an op inside another reports under the name that was called") {
  CHECK_THROWS_WITH_AS(conv1d(ones({1, 4, 3}), ones({2, 3, 3}), ones({3})),
                       "[conv1d] bias (3,) does not fit weight (2, 3, 3)", ShapeError);
  const Tensor other = Tensor::zeros({3}, DType::float64);
  CHECK_THROWS_WITH_AS(conv1d(ones({1, 4, 3}), ones({3, 3, 3}), other),
                       doctest::Contains("[conv1d] dtypes differ"), TypeError);
  CHECK_THROWS_WITH_AS(masked_fill(ones({3}), other, 0),
                       doctest::Contains("[masked_fill] dtypes differ"), TypeError);
  CHECK_THROWS_WITH_AS(stack({ones({3}), other}, 0), doctest::Contains("[stack] dtypes differ"),
                       TypeError);
  CHECK_THROWS_WITH_AS(subtract(ones({2}), ones({3})), doctest::Contains("[subtract] shapes"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(linear(ones({2, 3}), ones({3, 3}), other),
                       doctest::Contains("[linear] dtypes differ"), TypeError);
}

TEST_CASE("axes given twice, and ids outside their axis, are named") {
  CHECK_THROWS_WITH_AS(sum(ones({2, 3}), {0, -2}), "[sum] axis 0 of shape (2, 3) is given twice",
                       ShapeError);
  CHECK_THROWS_WITH_AS(max(ones({2, 3}), {0, 2}), "[max] axis 2 is outside [-2, 2) of shape (2, 3)",
                       IndexError);
  CHECK_THROWS_AS(cumulative_sum(ones({2}), -2), IndexError);
  CHECK_THROWS_WITH_AS(cumulative_sum(Tensor::scalar(1), 0),
                       "[cumulative_sum] a scalar has no axes, got axis 0", IndexError);
  CHECK_THROWS_AS(stack({ones({2})}, 2), IndexError);
  CHECK_THROWS_WITH_AS(gather(ones({2, 3}), -1, Indices({0, 3}, {2, 1})),
                       "[gather] id 3 is outside [0, 3), axis -1 of x (2, 3)", IndexError);
  CHECK_THROWS_AS(masked_max(ones({1, 2, 3}), Indices({3}, {1})), IndexError);
}

TEST_CASE("values outside an op's domain are named") {
  CHECK_THROWS_WITH_AS(clamp(ones({2}), 1, 0),
                       "[clamp] the lower bound 1 exceeds the upper bound 0", ValueError);
  CHECK_THROWS_AS(max(ones({2, 0}), 1), ValueError);
  CHECK_THROWS_AS(variance(ones({2, 1}), 1, false, 1), ValueError);
  CHECK_THROWS_AS(pad(ones({2}), 0, -1, 0), ValueError);
  constexpr Index most = std::numeric_limits<Index>::max();
  CHECK_THROWS_WITH_AS(pad(ones({2}), 0, most, most),
                       doctest::Contains("[pad] axis 0 of shape (2,) padded by"), ValueError);
  CHECK_THROWS_WITH_AS(conv1d(ones({1, 2, 3}), ones({1, 3, 1}), {}, {.padding = most / 2}),
                       doctest::Contains("[conv1d] dilation 1, padding"), ValueError);
  CHECK_THROWS_WITH_AS(reshape(ones({6}), {-1, 2, -1}),
                       "[reshape] only one size may be -1, got (-1, 2, -1)", ShapeError);
  for (const double epsilon : {-1.0, inf, std::nan("")}) {
    CHECK_THROWS_WITH_AS(
        layer_norm(ones({2, 3}), ones({3}), {}, epsilon),
        doctest::Contains("[layer_norm] epsilon must be finite and not negative, got"), ValueError);
    CHECK_THROWS_AS(rms_norm(ones({2, 3}), ones({3}), epsilon), ValueError);
  }
  const Tensor x = ones({1, 2, 4});
  CHECK_THROWS_WITH_AS(attention(x, x, x, {}, {.scale = std::nan("")}, Random(1, Purpose::testing)),
                       "[attention] scale must be finite, got nan", ValueError);
  CHECK_THROWS_AS(attention_weights(x, x, {.key_lengths = {}, .bias = ones({3, 2})}, {}),
                  ShapeError);
  CHECK_THROWS_WITH_AS(
      attention_weights(x, x, {.key_lengths = {}, .bias = ones({2, 1, 1, 1})}, {}),
      "[attention] the bias (2, 1, 1, 1) does not broadcast to the scores (1, 1, 2, 2)",
      ShapeError);
  for (const double weight : {-1.0, inf, std::nan("")})
    CHECK_THROWS_WITH_AS(
        cross_entropy(ones({1, 2}), Indices({0}, {1}),
                      {.class_weights = Tensor::from({1, weight}, {2})}),
        doctest::Contains("[cross_entropy] class weights must be finite and not negative, got"),
        ValueError);
  for (const double target : {5.0, -0.1, std::nan("")}) {
    CHECK_THROWS_AS(binary_cross_entropy(Tensor::scalar(0.5), Tensor::scalar(target)), ValueError);
    CHECK_THROWS_WITH_AS(
        binary_cross_entropy_with_logits(Tensor::scalar(0.5), Tensor::scalar(target)),
        doctest::Contains("[binary_cross_entropy_with_logits] target"), ValueError);
  }
  CHECK_THROWS_WITH_AS(split(ones({2, 5}), 1, 0),
                       "[split] shape (2, 5) cannot be split into 0 chunks", ValueError);
  CHECK_THROWS_AS(split_by_size(ones({2, 5}), 1, 0), ValueError);
  CHECK_THROWS_WITH_AS(slice(ones({5}), 0, 1, 3, 0), "[slice] step 0 must be at least 1",
                       ValueError);
  CHECK_THROWS_WITH_AS(slice(ones({5}), 0, -6, -1),
                       "[slice] range [-6, -1) is outside axis 0 of shape (5,)", IndexError);
  CHECK_THROWS_AS(slice(ones({5}), 0, -1, -3), IndexError);
  CHECK_THROWS_WITH_AS(topk(ones({2, 5}), 6),
                       "[topk] cannot take 6 of the 5 elements along axis -1 of shape (2, 5)",
                       ValueError);
  CHECK_THROWS_AS(argmax(ones({2, 0}), 1), ValueError);
  CHECK_THROWS_WITH_AS(embedding(ones({5, 2}), Indices({0}, {1}), 5),
                       "[embedding] padding_idx 5 is outside the table of 5 rows", IndexError);
  CHECK_THROWS_AS(
      binary_cross_entropy_with_logits(ones({2, 3}), ones({2, 3}), Reduction::mean, ones({2})),
      ShapeError);
  CHECK_THROWS_WITH_AS(
      binary_cross_entropy_with_logits(ones({2}), ones({2}), Reduction::mean, -1 * ones({})),
      "[binary_cross_entropy_with_logits] pos_weight must be finite and not negative, got -1",
      ValueError);
  CHECK_THROWS_AS(conv1d(ones({1, 2, 3}), ones({1, 3, 1}), {}, {.stride = 0}), ValueError);
  CHECK_THROWS_WITH_AS(binary_cross_entropy(Tensor::from({0.5, 1.5}, {2}), ones({2})),
                       "[binary_cross_entropy] probability 1.5 is outside [0, 1]; logits need "
                       "binary_cross_entropy_with_logits",
                       ValueError);
  CHECK_THROWS_AS(
      cross_entropy(ones({1, 3}), Indices({0}, {1}), {.label_smoothing = 1, .class_weights = {}}),
      ValueError);
}

TEST_CASE("a split leaves the rest in a smaller last chunk, and may need fewer chunks") {
  const auto sizes = [](const std::vector<Tensor>& chunks) {
    std::vector<Index> result;
    for (const Tensor& chunk : chunks) result.push_back(chunk.dim(1));
    return result;
  };
  CHECK(sizes(split(ones({2, 7}), 1, 3)) == std::vector<Index>{3, 3, 1});
  CHECK(sizes(split(ones({2, 6}), 1, 4)) == std::vector<Index>{2, 2, 2});
  CHECK(sizes(split(ones({2, 0}), 1, 2)) == std::vector<Index>{0, 0});
  CHECK(sizes(split_by_size(ones({2, 7}), 1, 3)) == std::vector<Index>{3, 3, 1});
  CHECK(sizes(split_by_size(ones({2, 0}), 1, 3)) == std::vector<Index>{0});
}

TEST_CASE(
    "infinite logits that are right lose nothing, and with a pos_weight those of positive "
    "targets") {
  const auto loss = [](double logit, double target, double weight) {
    return binary_cross_entropy_with_logits(Tensor::scalar(logit, DType::float64),
                                            Tensor::scalar(target, DType::float64), Reduction::none,
                                            Tensor::scalar(weight, DType::float64))
        .item();
  };
  CHECK(loss(inf, 1, 3) == 0);
  CHECK(loss(-inf, 0, 3) == 0);
  CHECK(loss(-inf, 1, 3) == inf);
  CHECK(loss(inf, 1, 0) == 0);
}

}  // namespace qkv::tests::op_limits_test
