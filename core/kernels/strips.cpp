#include "core/kernels/strips.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/kernels/depth.h"
#include "core/kernels/transpose.h"
#include "core/kernels/vector.h"
#include "core/parallel.h"

namespace qkv::kernels {
namespace {

constexpr Index lanes = width<float>;

/// Some strips of a product: `columns` columns of y from the first of `strips` on.
struct Part {
  Index in, out;
  const float* strips;
  const float* x;
  float* y;
  Index columns;
  bool adds;
};

/// `Vectors` strips for `Rows` rows of x; the last strip may extend beyond the columns of y.
template <int Rows, int Vectors>
[[gnu::flatten]] void multiply_strips(const Part& part) {
  using Sums = Vector<float>[Rows][Vectors];
  const auto for_each = [](auto f) {
    unrolled<Rows>([&](auto r) { unrolled<Vectors>([&](auto v) { f(r, v); }); });
  };
  const Index depth = depth_of(part.in), last = part.columns - (Vectors - 1) * lanes;
  const auto y = [&](int r, int v) { return part.y + r * part.out + v * lanes; };
  Sums totals;
  for_each([&](auto r, auto v) {
    const bool whole = v < Vectors - 1 || last == lanes;
    totals[r][v] = !part.adds ? Vector<float>{} : whole ? load(y(r, v)) : load_part(y(r, v), last);
  });
  for (Index begin = 0; begin < part.in; begin += depth) {
    Sums sums;
    for_each([&](auto r, auto v) { sums[r][v] = Vector<float>{}; });
    for (Index i = begin; i < std::min(begin + depth, part.in); ++i) {
      Vector<float> weights[Vectors];
      unrolled<Vectors>(
          [&](auto v) { weights[v] = load(part.strips + (v * part.in + i) * lanes); });
      unrolled<Rows>([&](auto r) {
        const float factor = part.x[r * part.in + i];
        unrolled<Vectors>([&](auto v) { sums[r][v] += factor * weights[v]; });
      });
    }
    const bool first = begin == 0 && !part.adds;
    for_each(
        [&](auto r, auto v) { totals[r][v] = first ? sums[r][v] : sums[r][v] + totals[r][v]; });
  }
  for_each([&](auto r, auto v) {
    if (v < Vectors - 1 || last == lanes)
      store<float>(y(r, v), totals[r][v]);
    else
      store_part<float>(y(r, v), totals[r][v], last);
  });
}

/// Strips that few rows take together, so that a sum need not wait for the one before.
constexpr int together(int rows) {
  return rows <= 2 ? 4 : 2;
}

/// Products with several strips and with one.
struct Multiply {
  void (*several)(const Part&);
  void (*one)(const Part&);
};
/// multiplies[rows - 1]
constexpr auto multiplies = []<int... R>(std::integer_sequence<int, R...>) {
  return std::array{
      Multiply{multiply_strips<R + 1, together(R + 1)>, multiply_strips<R + 1, 1>}...};
}
(std::make_integer_sequence<int, static_cast<int>(Strips::most_rows)>());

}  // namespace

Strips::Strips(const float* weight, Index out, Index in)
    : out_(out),
      in_(in),
      buffer_(detail::allocate_buffer(static_cast<std::size_t>((out + lanes - 1) / lanes * lanes *
                                                               in * Index{sizeof(float)}))) {
  parallel_for(partition((out + lanes - 1) / lanes, in * lanes), [&](Index begin, Index end) {
    for (Index row = begin * lanes; row < std::min(end * lanes, out); row += lanes)
      for (Index i = 0; i < in; i += lanes) {
        const Index count = std::min(lanes, in - i);
        Vector<float> rows[lanes];
        load_rows<float>(count, std::min(lanes, out - row), weight + row * in + i, in, rows);
        transpose_rows<float>(rows);
        float* to = elements() + row * in + i * lanes;
        unrolled<lanes>([&](auto j) {
          if (j < count) store<float>(to + j * lanes, rows[j]);
        });
      }
  });
}

void Strips::multiply(Index m, const float* x, bool adds, float* y) const {
  if (m == 0) return;
  const Multiply& chosen = multiplies[static_cast<std::size_t>(m) - 1];
  const Index wide = together(static_cast<int>(m)) * lanes;
  parallel_for(partition((out_ + wide - 1) / wide, wide * in_), [&](Index begin, Index end) {
    const Index last = std::min(end * wide, out_);
    const auto part = [&](Index j, Index columns) {
      return Part{in_, out_, elements() + j * in_, x, y + j, columns, adds};
    };
    Index j = begin * wide;
    for (; j + wide <= last; j += wide) chosen.several(part(j, wide));
    for (; j < last; j += lanes) chosen.one(part(j, std::min(lanes, last - j)));
  });
}

}  // namespace qkv::kernels
