#include "core/kernels/strips.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "core/kernels/depth.h"
#include "core/kernels/transpose.h"
#include "core/kernels/vector.h"
#include "core/parallel.h"

namespace qkv::kernels {
namespace {

constexpr Index lanes = width<float>;
/// Strips that a product takes together at most.
constexpr int most_together = 4;
constexpr Index wide = most_together * lanes;

constexpr Index rounded_up(Index count, Index multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

/// Elements as strips have them: a vector of `Read` holds `count` elements of each row.
struct Float32 {
  using Read = float;
  static constexpr int count = 1;
  static constexpr Index stride = lanes;  ///< from a vector of a strip to the next
  /// Offset of element i in the v-th of adjacent strips.
  static Index place(Index in, Index v, Index i) { return (v * in + i) * lanes; }
  static void prefetch(const float*) {}
  static Vector<float> element(const Vector<float>& read, int) { return read; }
};
/// Strips in fours, whose vectors lie side by side.
struct Int8 {
  using Read = std::int32_t;
  static constexpr int count = 4;
  static constexpr Index stride = wide;
  static Index place(Index, Index v, Index i) { return i / count * stride + v * lanes; }
  /// By itself, the processor does not read far enough ahead.
  static void prefetch(const std::int32_t* from) {
    constexpr Index line = 64 / sizeof(std::int32_t), ahead = 32 * line;
    for (Index i = 0; i < wide; i += line) __builtin_prefetch(from + ahead + i);
  }
  /// Byte k of each lane, from the lowest on.
  static Vector<float> element(const Vector<std::int32_t>& read, int k) {
    return __builtin_convertvector((read << (24 - 8 * k)) >> 24, Vector<float>);
  }
};

/// Some strips of a product: `columns` columns of y from the first of `strips` on.
struct Part {
  Index in, out;
  const std::byte* strips;
  const float* scales;  ///< factors of the columns, or null
  const float* x;
  float* y;
  Index columns;
  bool adds;
};

/// `Vectors` strips for `Rows` rows of x; the last strip may extend beyond the columns of y.
template <class Format, int Rows, int Vectors>
[[gnu::flatten]] void multiply_strips(const Part& part) {
  using Sums = Vector<float>[Rows][Vectors];
  using Read = typename Format::Read;
  const auto for_each = [](auto f) {
    unrolled<Rows>([&](auto r) { unrolled<Vectors>([&](auto v) { f(r, v); }); });
  };
  const Index depth = rounded_up(depth_of(part.in), Format::count),
              last = part.columns - (Vectors - 1) * lanes;
  const auto* strips = reinterpret_cast<const Read*>(part.strips);
  const auto y = [&](int r, int v) { return part.y + r * part.out + v * lanes; };
  Sums totals, sums;
  for_each([&](auto r, auto v) {
    const bool whole = v < Vectors - 1 || last == lanes;
    totals[r][v] = !part.adds ? Vector<float>{} : whole ? load(y(r, v)) : load_part(y(r, v), last);
  });
  // Adds the products of elements i to i + count - 1.
  const auto add = [&](Index i, auto count) {
    Vector<Read> reads[Vectors];
    unrolled<Vectors>([&](auto v) { reads[v] = load(strips + Format::place(part.in, v, i)); });
    if constexpr (Vectors == most_together) Format::prefetch(strips + Format::place(part.in, 0, i));
    unrolled<Format::count>([&](auto k) {
      if (k >= count) return;
      Vector<float> weights[Vectors];
      unrolled<Vectors>([&](auto v) { weights[v] = Format::element(reads[v], k); });
      unrolled<Rows>([&](auto r) {
        const float factor = part.x[r * part.in + i + k];
        unrolled<Vectors>([&](auto v) { sums[r][v] += factor * weights[v]; });
      });
    });
  };
  for (Index begin = 0; begin < part.in; begin += depth) {
    for_each([&](auto r, auto v) { sums[r][v] = Vector<float>{}; });
    const Index end = std::min(begin + depth, part.in);
    Index i = begin;
    for (; i + Format::count <= end; i += Format::count)
      add(i, std::integral_constant<int, Format::count>());
    if (i < end) add(i, end - i);
    if (part.scales) for_each([&](auto r, auto v) { sums[r][v] *= load(part.scales + v * lanes); });
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
  return rows <= 2 ? most_together : 2;
}

/// Products with several strips and with one.
struct Multiply {
  void (*several)(const Part&);
  void (*one)(const Part&);
};
/// multiplies[rows - 1]
template <class Format>
constexpr auto multiplies = []<int... R>(std::integer_sequence<int, R...>) {
  return std::array{Multiply{multiply_strips<Format, R + 1, together(R + 1)>,
                             multiply_strips<Format, R + 1, 1>}...};
}
(std::make_integer_sequence<int, static_cast<int>(Strips::most_rows)>());

const Multiply& multiply_of(WeightFormat format, Index rows) {
  const auto& of_rows = format == WeightFormat::float32 ? multiplies<Float32> : multiplies<Int8>;
  return of_rows[static_cast<std::size_t>(rows) - 1];
}

}  // namespace

Strips::Strips(WeightFormat format, const float* weight, Index out, Index in)
    : format_(format),
      out_(out),
      in_(in),
      vectors_(format == WeightFormat::float32 ? in : rounded_up(in, Int8::count) / Int8::count),
      stride_(format == WeightFormat::float32 ? Float32::stride : Int8::stride),
      elements_(detail::allocate_buffer(
          static_cast<std::size_t>(rounded_up(out, stride_) * vectors_) * sizeof(float))),
      scales_(format == WeightFormat::float32
                  ? 0
                  : static_cast<std::size_t>(rounded_up(out, stride_))) {
  parallel_for(partition(rounded_up(out, lanes) / lanes, in * lanes), [&](Index begin, Index end) {
    for (Index row = begin * lanes; row < end * lanes; row += lanes) {
      const Index rows = std::min(lanes, out_ - row);
      if (format_ == WeightFormat::float32)
        pack_float32(weight + row * in_, rows, row);
      else
        pack_int8(weight + row * in_, rows, row);
    }
  });
}

void Strips::pack_float32(const float* weight, Index rows, Index row) {
  for (Index i = 0; i < in_; i += lanes) {
    const Index count = std::min(lanes, in_ - i);
    Vector<float> square[lanes];
    load_rows<float>(count, rows, weight + i, in_, square);
    transpose_rows<float>(square);
    float* to = reinterpret_cast<float*>(strip(row)) + i * lanes;
    unrolled<lanes>([&](auto j) {
      if (j < count) store<float>(to + j * lanes, square[j]);
    });
  }
}

void Strips::pack_int8(const float* weight, Index rows, Index row) {
  auto* to = reinterpret_cast<std::uint32_t*>(strip(row));
  for (Index i = 0; i < vectors_; ++i) std::fill_n(to + i * stride_, lanes, 0);
  std::vector<std::int8_t> integers(static_cast<std::size_t>(in_));
  for (Index r = 0; r < rows; ++r) {
    scales_[static_cast<std::size_t>(row + r)] =
        to_int8({weight + r * in_, integers.size()}, integers);
    for (Index i = 0; i < in_; ++i) {
      const auto byte = static_cast<std::uint8_t>(integers[static_cast<std::size_t>(i)]);
      to[i / Int8::count * stride_ + r] |= std::uint32_t{byte} << (8 * (i % Int8::count));
    }
  }
}

void Strips::multiply(Index m, const float* x, bool adds, float* y) const {
  parallel_for(partition((out_ + wide - 1) / wide, wide * in_ * m), [&](Index begin, Index end) {
    for (Index row = 0; row < m; row += most_rows)
      multiply_columns(begin * wide, std::min(end * wide, out_), std::min(most_rows, m - row),
                       x + row * in_, adds, y + row * out_);
  });
}

void Strips::multiply_columns(Index begin, Index end, Index m, const float* x, bool adds,
                              float* y) const {
  const Multiply& multiply = multiply_of(format_, m);
  const Index several = together(static_cast<int>(m)) * lanes;
  const auto part = [&](Index j, Index columns) {
    const float* scales = scales_.empty() ? nullptr : scales_.data() + j;
    return Part{in_, out_, strip(j), scales, x, y + j, columns, adds};
  };
  Index j = begin;
  for (; j + several <= end; j += several) multiply.several(part(j, several));
  for (; j < end; j += lanes) multiply.one(part(j, std::min(lanes, end - j)));
}

std::byte* Strips::strip(Index row) const {
  return elements_.get() +
         (row / stride_ * stride_ * vectors_ + row % stride_) * Index{sizeof(float)};
}

}  // namespace qkv::kernels
