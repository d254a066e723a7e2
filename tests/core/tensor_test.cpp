#include "core/tensor.h"

#include <doctest/doctest.h>

#include "core/ops.h"
#include "core/parameter.h"

namespace qkv::tests {

TEST_CASE("a shared tensor cannot be written, copy_if_shared() can") {
  Tensor x = Tensor::from({1, 2}, {2});
  const Tensor y = x;
  CHECK_THROWS_AS(x.mutable_data<float>(), ValueError);
  x = copy_if_shared(std::move(x));
  x.mutable_data<float>()[0] = 5;
  CHECK(y.values() == std::vector<double>{1, 2});
}

TEST_CASE("a tensor without storage has a shape and no elements") {
  const WithoutStorage without_storage;
  const Tensor x = Tensor::zeros({1 << 20, 1 << 20, 1 << 10});
  CHECK(x.size() == Index{1} << 50);
  CHECK_FALSE(x.has_storage());
  CHECK_THROWS_AS(x.data<float>(), ValueError);
  CHECK_THROWS_AS(x + x, ValueError);
  CHECK(Parameter(x).value().detach().shape() == x.shape());
}

TEST_CASE("a prefix has the first elements, in the same buffer, and never more than there are") {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {1, 3, 2});
  const Tensor first = x.prefix({1, 2, 2});
  CHECK(first.values() == std::vector<double>{1, 2, 3, 4});
  CHECK(first.data<float>().data() == x.data<float>().data());
  CHECK_THROWS_AS(x.prefix({7}), ShapeError);
  CHECK_THROWS_AS(Parameter(x).value().prefix({2}), ValueError);
}

TEST_CASE("with_shape refuses a tensor with a node, whose gradient would keep the old shape") {
  const Parameter p(Tensor::zeros({2, 3}));
  CHECK_THROWS_AS(p.value().with_shape({6}), ValueError);
  CHECK(p.value().detach().with_shape({6}).shape() == Shape{6});
  CHECK(gradients_of(sum(reshape(p, {6}))).of(p).shape() == Shape{2, 3});
}

TEST_CASE("a tensor is row-major and has a shape and a dtype") {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.dim(-1) == 3);
  CHECK(x.size() == 6);
  CHECK(x.data<float>()[4] == 5.0f);
  CHECK(x.to(DType::float64).data<double>()[4] == 5.0);
  CHECK(to_string(x.shape()) == "(2, 3)");
  CHECK_FALSE(Tensor());
}

TEST_CASE("a tensor is made of doubles or of floats, in either dtype") {
  const std::vector<float> floats = {0.1f, 2};
  const std::vector<double> doubles = {0.1, 2};
  CHECK(Tensor::from(floats, {2}).data<float>()[0] == 0.1f);
  CHECK(Tensor::from({0.1f, 2.f}, {2}).data<float>()[0] == 0.1f);
  CHECK(Tensor::from(floats, {2}, DType::float64).data<double>()[0] == 0.1f);
  CHECK(Tensor::from(doubles, {2}, DType::float64).data<double>()[0] == 0.1);
  CHECK_THROWS_AS(Tensor::from(floats, {3}), ShapeError);
}

TEST_CASE("reading a tensor as another dtype is an error that names both") {
  CHECK_THROWS_WITH_AS(Tensor::zeros({2}).data<double>(),
                       "[tensor] holds float32, not float64; convert it with to()", TypeError);
}

TEST_CASE("values that do not fill the shape, and item() of several, are errors") {
  CHECK_THROWS_AS(Tensor::from({1, 2}, {3}), ShapeError);
  CHECK_THROWS_AS(Tensor::zeros({3}).item(), ShapeError);
  CHECK_THROWS_AS(Indices({1}, {2}), ShapeError);
}

}  // namespace qkv::tests
