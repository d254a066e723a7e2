#include "core/xtensor.h"

#include <doctest/doctest.h>

namespace qkv::tests {
namespace {

template <class View>
std::vector<std::size_t> sizes_of(const View& view) {
  return {view.shape().begin(), view.shape().end()};
}

/// Calls `count` for each element that is computed.
struct Counting {
  using value_type = double;
  int& count;

  template <class... Args>
  double operator()(Args...) const {
    return ++count;
  }
  template <class It>
  double element(It, It) const {
    return ++count;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("a view of a tensor has its shape, its elements and its memory", T, float,
                   double) {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3}, dtype_of<T>);
  const auto view = xtensor_view<T>(x);
  const auto matrix = xtensor_view<T, 2>(x);
  CHECK(sizes_of(view) == std::vector<std::size_t>{2, 3});
  CHECK(matrix(1, 0) == 4);
  CHECK(view.data() == x.data<T>().data());
  CHECK(matrix.data() == x.data<T>().data());
}

TEST_CASE("a view of a tensor keeps its memory alive, unchanged") {
  Tensor x = Tensor::from({1, 2}, {2});
  const auto view = xtensor_view<float>(x);
  CHECK_THROWS_AS(x.mutable_data<float>(), ValueError);
  x = Tensor();
  CHECK(view(0) + view(1) == 3);
}

TEST_CASE("a view of a scalar has no axes, and a view of an empty tensor no elements") {
  const Tensor scalar = Tensor::scalar(7), empty = Tensor::zeros({0, 3});
  CHECK(xtensor_view<float>(scalar)() == 7);
  CHECK(xtensor_view<float, 0>(scalar)() == 7);
  CHECK(sizes_of(xtensor_view<float>(empty)) == std::vector<std::size_t>{0, 3});
  CHECK(xtensor_view<float>(Tensor()).size() == 0);
}

TEST_CASE("a view of another type or rank is an error") {
  const Tensor x = Tensor::zeros({2, 3});
  CHECK_THROWS_AS(xtensor_view<double>(x), TypeError);
  CHECK_THROWS_WITH_AS((xtensor_view<float, 3>(x)),
                       "[xtensor] a tensor of shape (2, 3) has 2 axes, not 3", ShapeError);
}

TEST_CASE("a mutable view writes to a tensor that nobody shares, and to no other") {
  Tensor x = Tensor::zeros({2, 2});
  mutable_xtensor_view<float, 2>(x)(1, 0) = 5;
  CHECK(x.values() == std::vector<double>{0, 0, 5, 0});
  const Tensor shared = x;
  CHECK_THROWS_AS(mutable_xtensor_view<float>(x), ValueError);
}

TEST_CASE("a tensor from an expression has its shape, its values and its type") {
  const xt::xarray<float> row = {1, 2, 3};
  const xt::xtensor<double, 2> column = {{10}, {20}};
  const Tensor single = from_xtensor(row * row), twice = from_xtensor(row + column);
  CHECK(single.dtype() == DType::float32);
  CHECK(single.values() == std::vector<double>{1, 4, 9});
  CHECK(twice.dtype() == DType::float64);
  CHECK(twice.shape() == Shape{2, 3});
  CHECK(twice.values() == std::vector<double>{11, 12, 13, 21, 22, 23});
  CHECK(from_xtensor<float>(row + column).dtype() == DType::float32);
  CHECK(from_xtensor<double>(xt::equal(row, 2)).values() == std::vector<double>{0, 1, 0});
}

TEST_CASE("a tensor from a view of its elements has them") {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(from_xtensor(xt::transpose(xtensor_view<float>(x))).values() ==
        std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(from_xtensor(xt::view(xtensor_view<float>(x), xt::all(), 1)).values() ==
        std::vector<double>{2, 5});
}

TEST_CASE("tensors from expressions without axes or elements") {
  const xt::xarray<double> scalar = 3;
  CHECK(from_xtensor(scalar + 1).shape() == Shape{});
  CHECK(from_xtensor(scalar + 1).item() == 4);
  const xt::xarray<float> empty = xt::zeros<float>({2, 0});
  CHECK(from_xtensor(2 * empty).shape() == Shape{2, 0});
}

TEST_CASE("an expression is evaluated once for each element") {
  int count = 0;
  const Tensor x =
      from_xtensor(xt::detail::make_xgenerator(Counting{count}, std::array<std::size_t, 2>{3, 5}));
  CHECK(count == 15);
  CHECK(x.values().back() == 15);
}

TEST_CASE("an expression with too many axes is an error") {
  const xt::xarray<float> x = xt::zeros<float>({1, 1, 1, 1, 1, 1, 1});
  CHECK_THROWS_AS(from_xtensor(x), ShapeError);
}

TEST_CASE("reducers that would be evaluated inside an expression are found at compile time") {
  const xt::xarray<float> x = {{1, 2}, {3, 4}};
  CHECK(detail::has_lazy_reducer<decltype(xt::sum(x, {1}))>);
  CHECK(detail::has_lazy_reducer<decltype(x / xt::sum(x, {1}, xt::keep_dims))>);
  CHECK(detail::has_lazy_reducer<decltype(1 + xt::exp(x - xt::amax(x)))>);
  CHECK(detail::has_lazy_reducer<decltype(xt::broadcast(xt::mean(x, {1}), {2, 2}))>);
  CHECK(detail::has_lazy_reducer<decltype(xt::strided_view(xt::sum(x, {1}), {0}))>);
  CHECK_FALSE(detail::has_lazy_reducer<decltype(1 + xt::exp(x))>);
  const xt::xarray<float> sums = xt::sum(x, {1});
  CHECK(from_xtensor(sums / 2.0F).values() == std::vector<double>{1.5, 3.5});
}

}  // namespace qkv::tests
