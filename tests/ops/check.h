#pragma once

#include <optional>

#include "tests/ops/torch_side.h"

namespace qkv::fuzz {

/// An array that differs from what it should be.
struct Failure {
  DType dtype = DType::float32;
  std::string what;  ///< "output", or "gradient of x1"
  Index element = 0;
  double got = 0, expected = 0, bound = 0;
  std::string message;  ///< what else went wrong: an exception, a shape, a signal
};

/// The inputs of a case as tensors.
In inputs_of(const Case& sample, DType dtype);
/// The result of its last step.
Tensor output_of(const Case& sample, const In& inputs);
/// The library's results of a case.
Outcome outcome_of(const Case& sample, DType dtype);

/// The oracle's: for the output and each gradient the exact values, with bounds.
/// `inexactness` gives additional units of roundoff of results between steps.
struct Expected {
  Shape shape;
  std::vector<Number> output;
  std::vector<std::vector<Number>> gradients;
  bool ordinary = false;  ///< neither values nor derivatives on the way are extreme
};
Expected expected_of(const Case& sample, DType dtype,
                     double (*inexactness)(const Number&) = nullptr);

/// The first difference between the two, in float32 and then in float64; then that of PyTorch from
/// the oracle, where it is given.
std::optional<Failure> check(const Case& sample, const TorchSide* torch);

/// A step as it stands in C++.
std::string call_of(const Case& sample, const Step& step);
/// The case as a test of doctest, which fails as long as the library does.
std::string code_of(const Case& sample, const Failure& failure);
/// One line: what failed and how.
std::string summary_of(const Failure& failure);

}  // namespace qkv::fuzz
