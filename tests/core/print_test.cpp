#include <doctest/doctest.h>

#include <sstream>

#include "core/creation.h"
#include "core/parameter.h"

namespace qkv::tests {

TEST_CASE("a tensor prints its elements, shape and dtype") {
  CHECK(to_string(Tensor::from({0.5, -1, 2, 0.125}, {2, 2})) ==
        "[[0.5, -1],\n [2, 0.125]] (2, 2) float32");
  CHECK(to_string(Tensor::scalar(1.0 / 3, DType::float64)) == "0.3333 () float64");
  CHECK(to_string(Tensor::zeros({0, 3})) == "[] (0, 3) float32");
  CHECK(to_string(Tensor()) == "[] (0,) float32");
  CHECK(to_string(Tensor::from({1, 2, 3, 4}, {2, 2, 1})) ==
        "[[[1],\n  [2]],\n\n [[3],\n  [4]]] (2, 2, 1) float32");
}

TEST_CASE("of a long axis the first and last elements are printed") {
  CHECK(to_string(arange(6)) == "[0, 1, 2, 3, 4, 5] (6,) float32");
  CHECK(to_string(arange(1000)) == "[0, 1, 2, ..., 997, 998, 999] (1000,) float32");
  CHECK(to_string(Tensor::zeros({7, 1})) ==
        "[[0],\n [0],\n [0],\n ...,\n [0],\n [0],\n [0]] (7, 1) float32");
}

TEST_CASE("fmt and streams print a tensor, and one without elements' storage") {
  std::ostringstream out;
  out << arange(2);
  CHECK(out.str() == "[0, 1] (2,) float32");
  CHECK(fmt::format("{:>20}|", arange(2)) == " [0, 1] (2,) float32|");
  const WithoutStorage shapes_only;
  CHECK(to_string(Tensor::zeros({2, 3})) == "without storage (2, 3) float32");
}

TEST_CASE("fmt and streams print a parameter as its value, and streams a shape") {
  const Parameter parameter(arange(2));
  std::ostringstream out;
  out << parameter << ' ' << parameter.shape();
  CHECK(out.str() == "[0, 1] (2,) float32 (2,)");
  CHECK(fmt::format("{}", parameter) == "[0, 1] (2,) float32");
}

}  // namespace qkv::tests
