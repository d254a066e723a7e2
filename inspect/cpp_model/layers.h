#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "inspect/cpp_model/description.h"

namespace qkv_model {

using Ids = std::vector<int>;
using Vector = std::vector<double>;

/// Vectors side by side, [rows, width].
struct Matrix {
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t columns) : width(columns), values(rows * columns) {}

  std::size_t rows() const { return width == 0 ? 0 : values.size() / width; }
  double* row(std::size_t i) { return values.data() + i * width; }
  const double* row(std::size_t i) const { return values.data() + i * width; }
  Matrix one_row(std::size_t i) const {
    Matrix result(1, width);
    std::copy(row(i), row(i) + width, result.row(0));
    return result;
  }

  std::size_t width = 0;
  Vector values;
};

/// The sum of products, in four parts that a processor adds side by side.
template <class A>
double dot(const A* a, const double* b, std::size_t size) {
  double sums[4] = {0, 0, 0, 0};
  std::size_t i = 0;
  for (; i + 4 <= size; i += 4)
    for (std::size_t j = 0; j < 4; ++j) sums[j] += a[i + j] * b[i + j];
  for (; i < size; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// y = x W^T + b
struct Linear {
  Linear(Weights of_inputs, Weights added) : weight(of_inputs), bias(added) {}
  explicit Linear(const std::string& path)
      : Linear(weights_of(path + ".weight"), weights_of(path + ".bias")) {}

  explicit operator bool() const { return static_cast<bool>(weight); }
  Matrix operator()(const Matrix& x) const {
    Matrix y(x.rows(), weight.rows);
    for (std::size_t t = 0; t < x.rows(); ++t)
      for (std::size_t i = 0; i < weight.rows; ++i)
        y.row(t)[i] = dot(weight.row(i), x.row(t), x.width) + (bias ? bias.values[i] : 0.0);
    return y;
  }

  Weights weight, bias;
};

/// (x - mean) / sqrt(variance + epsilon) weight + bias
struct LayerNorm {
  explicit LayerNorm(const std::string& path)
      : weight(weights_of(path + ".weight")), bias(weights_of(path + ".bias")) {}

  explicit operator bool() const { return static_cast<bool>(weight); }
  Matrix operator()(Matrix x) const {
    const auto width = static_cast<double>(x.width);
    for (std::size_t t = 0; t < x.rows(); ++t) {
      double* const row = x.row(t);
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < x.width; ++i) mean += row[i] / width;
      for (std::size_t i = 0; i < x.width; ++i)
        variance += (row[i] - mean) * (row[i] - mean) / width;
      const double scale = 1 / std::sqrt(variance + description().norm_epsilon);
      for (std::size_t i = 0; i < x.width; ++i)
        row[i] = (row[i] - mean) * scale * weight.values[i] + (bias ? bias.values[i] : 0.0);
    }
    return x;
  }

  Weights weight, bias;
};

inline Matrix sum_of(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] += b.values[i];
  return a;
}

/// GELU by the error function, or by the tanh approximation (Hendrycks & Gimpel 2016); ReLU, or its
/// square (So et al. 2021).
inline double activated(double x) {
  switch (description().activation) {
    case Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case Activation::gelu:
      return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::relu_squared:
      break;
  }
  return std::max(x, 0.0) * std::max(x, 0.0);
}

inline Matrix activated(Matrix x) {
  for (double& value : x.values) value = activated(value);
  return x;
}

struct FeedForward {
  explicit FeedForward(const std::string& path) : w_1(path + ".w_1"), w_2(path + ".w_2") {}

  explicit operator bool() const { return static_cast<bool>(w_1); }
  Matrix operator()(const Matrix& x) const { return w_2(activated(w_1(x))); }

  Linear w_1, w_2;
};

/// The vectors of tokens, [time, width].
inline Matrix embedded(const Ids& ids) {
  static const Weights table = weights_of("embedding.weight");
  Matrix x(ids.size(), table.columns);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const float* const row = table.row(static_cast<std::size_t>(ids[t]));
    std::copy(row, row + table.columns, x.row(t));
  }
  return x;
}

/// The output layer, or the embedding table in its place: [time, width] -> [time, choices].
inline Matrix logits_of(const Matrix& x) {
  static const Linear head =
      weights_of("head.weight") ? Linear("head") : Linear(weights_of("embedding.weight"), {});
  return head(x);
}

inline Vector softmax(Vector x) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& v : x) sum += v = std::exp(v - largest);
  for (double& v : x) v /= sum;
  return x;
}

/// The mean of the rows, as one row.
inline Matrix mean_of(const Matrix& x) {
  Matrix mean(1, x.width);
  for (std::size_t t = 0; t < x.rows(); ++t)
    for (std::size_t i = 0; i < x.width; ++i)
      mean.values[i] += x.row(t)[i] / static_cast<double>(x.rows());
  return mean;
}

/// A kind of model with its weights, made at the first call.
template <class Model>
const Model& loaded() {
  static const Model model;
  return model;
}

}  // namespace qkv_model
