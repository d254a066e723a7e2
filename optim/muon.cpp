#include "optim/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/kernels/gemm.h"
#include "core/kernels/scratch.h"

namespace qkv {
namespace {

using kernels::Matrix;
using kernels::Scratch;

/// Replaces x [rows, columns] = U S V^T by about U V^T: five steps of the Newton-Schulz iteration
/// x = a x + (b x x^T + c (x x^T)^2) x with Jordan's coefficients, which bring all singular values
/// into [0.7, 1.2]. `epsilon` is the least norm that x is divided by.
template <class T>
void orthogonalise(T* x, Index rows, Index columns, double epsilon) {
  constexpr int iterations = 5;
  constexpr T a{3.4445F}, b{-4.775F}, c{2.0315F};
  const Index size = rows * columns, rank = std::min(rows, columns);
  const bool wide = rows <= columns;  // a tall x is multiplied from the right, by x^T x
  const Scratch<T> gram(rank * rank), polynomial(rank * rank), product(size);
  T* next = product.data();

  double squares = 0;
  for (Index i = 0; i < size; ++i) squares += double{x[i]} * double{x[i]};
  const auto scale = static_cast<T>(1 / std::max(std::sqrt(squares), epsilon));
  for (Index i = 0; i < size; ++i) x[i] *= scale;

  const Matrix<T> g{gram.data(), rank}, p{polynomial.data(), rank};
  const Matrix<const T> from_g{gram.data(), rank}, from_p{polynomial.data(), rank};
  T* from = x;
  for (int i = 0; i < iterations; ++i) {
    const Matrix<const T> as_is{from, columns}, transposed{from, columns, true};
    kernels::gemm(rank, rank, size / rank, T{1}, wide ? as_is : transposed,
                  wide ? transposed : as_is, T{0}, g);
    std::copy_n(g.data, rank * rank, p.data);
    kernels::gemm(rank, rank, rank, c, from_g, from_g, b, p);
    std::copy_n(from, size, next);
    kernels::gemm(rows, columns, rank, T{1}, wide ? from_p : as_is, wide ? as_is : from_p, a,
                  Matrix<T>{next, columns});
    std::swap(from, next);
  }
  if (from != x) std::copy_n(from, size, x);
}

}  // namespace

Index Muon::slots_of(const Parameter& parameter) const {
  return orthogonalises(parameter) ? 1 : slots();
}

void Muon::update(const Section& section, double learning_rate, std::int64_t step) const {
  if (!orthogonalises(section.parameter)) return Adam::update(section, learning_rate, step);
  dispatch(section.gradient.dtype(), [&]<class T>() {
    const auto beta = static_cast<T>(options_.beta1), rest = static_cast<T>(1 - options_.beta1);
    for_each_element<T, 1>(section, [=](T&, T g, T& m) { m = beta * m + rest * g; });
  });
}

void Muon::update_whole(const Section& section, double learning_rate) const {
  if (!orthogonalises(section.parameter)) return;
  dispatch(section.gradient.dtype(), [&]<class T>() {
    const Index size = section.gradient.size(), rows = section.gradient.dim(0),
                columns = size / rows;
    const Scratch<T> direction(size);
    T* const u = direction.data();
    const auto beta = static_cast<T>(options_.beta1), rest = static_cast<T>(1 - options_.beta1);
    const T *g = section.gradient.data<T>().data(), *m = section.slots[0].data<T>().data();
    for (Index i = 0; i < size; ++i) u[i] = rest * g[i] + beta * m[i];
    orthogonalise(u, rows, columns, options_.epsilon);
    const auto shrinkage = static_cast<T>(1 - learning_rate * section.weight_decay),
               rate = static_cast<T>(
                   learning_rate * 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns))));
    T* const value = section.parameter.mutable_data<T>().data();
    for (Index i = 0; i < size; ++i) value[i] = shrinkage * value[i] - rate * u[i];
  });
}

bool orthogonalises(const Parameter& parameter) {
  return decays(parameter) && parameter.role() != Role::head;
}

}  // namespace qkv
