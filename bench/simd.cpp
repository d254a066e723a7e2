// Our vectors (core/kernels/vector.h, math.h) against two SIMD libraries, Highway and xsimd, by the
// same loops, as the table in docs/performance.md: nanoseconds, the best of many runs by one
// thread, data in the first-level cache; the largest error of exp in units in the last place.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <xsimd/xsimd.hpp>

#include "core/kernels/math.h"

namespace {

namespace kernels = qkv::kernels;
namespace hn = hwy::HWY_NAMESPACE;

struct Ours {
  using Vector = kernels::Vector<float>;
  static constexpr int width = kernels::width<float>;
  static Vector load(const float* from) { return kernels::load(from); }
  static void store(float* to, Vector v) { kernels::store<float>(to, v); }
  static Vector broadcast(float value) { return kernels::broadcast(value); }
  static Vector multiply_add(float a, Vector b, Vector sum) { return a * b + sum; }
  static Vector add(Vector a, Vector b) { return a + b; }
  static Vector exp(Vector x) { return qkv::math::exp(x); }
  static float sum(Vector v) {
    return kernels::fold<float>(v, [](Vector a, Vector b) { return a + b; });
  }
};

struct Highway {
  static constexpr hn::ScalableTag<float> tag{};
  using Vector = hn::Vec<hn::ScalableTag<float>>;
  static constexpr int width = kernels::width<float>;
  static Vector load(const float* from) { return hn::LoadU(tag, from); }
  static void store(float* to, Vector v) { hn::StoreU(v, tag, to); }
  static Vector broadcast(float value) { return hn::Set(tag, value); }
  static Vector multiply_add(float a, Vector b, Vector sum) {
    return hn::MulAdd(broadcast(a), b, sum);
  }
  static Vector add(Vector a, Vector b) { return hn::Add(a, b); }
  static Vector exp(Vector x) { return hn::Exp(tag, x); }
  static float sum(Vector v) { return hn::GetLane(hn::SumOfLanes(tag, v)); }
};

struct Xsimd {
  using Vector = xsimd::batch<float>;
  static constexpr int width = static_cast<int>(Vector::size);
  static Vector load(const float* from) { return Vector::load_unaligned(from); }
  static void store(float* to, Vector v) { v.store_unaligned(to); }
  static Vector broadcast(float value) { return Vector(value); }
  static Vector multiply_add(float a, Vector b, Vector sum) {
    return xsimd::fma(broadcast(a), b, sum);
  }
  static Vector add(Vector a, Vector b) { return a + b; }
  static Vector exp(Vector x) { return xsimd::exp(x); }
  static float sum(Vector v) { return xsimd::hadd(v); }
};
static_assert(Xsimd::width == Ours::width);

constexpr int length = 2048, depth = 128;
using Values = std::array<float, length>;

Values inputs() {  // of softmax
  Values x{};
  for (int i = 0; i < length; ++i)
    x[static_cast<std::size_t>(i)] = -80 * static_cast<float>(i) / length;
  return x;
}

template <class Simd>
[[gnu::flatten]] void exp_of(const Values& x, Values& y) {
  for (std::size_t i = 0; i < length; i += Simd::width)
    Simd::store(&y[i], Simd::exp(Simd::load(&x[i])));
}

template <class Simd>
[[gnu::flatten]] float sum_of(const Values& x) {
  typename Simd::Vector sums[4];
  kernels::unrolled<4>([&](auto j) { sums[j] = Simd::broadcast(0); });
  for (std::size_t i = 0; i < length; i += 4 * Simd::width)
    kernels::unrolled<4>(
        [&](auto j) { sums[j] = Simd::add(sums[j], Simd::load(&x[i + j * Simd::width])); });
  return Simd::sum(Simd::add(Simd::add(sums[0], sums[1]), Simd::add(sums[2], sums[3])));
}

/// A tile of a product, 6 rows x 2 vectors: a [depth, 6], b [depth, 2 vectors].
template <class Simd>
[[gnu::flatten]] void tile_product(const Values& a, const Values& b, Values& c) {
  typename Simd::Vector sums[12];
  kernels::unrolled<12>([&](auto i) { sums[i] = Simd::broadcast(0); });
  for (std::size_t p = 0; p < depth; ++p) {
    const std::size_t at = p * 2 * Simd::width % (length - 2 * Simd::width + 1);
    const auto left = Simd::load(&b[at]), right = Simd::load(&b[at + Simd::width]);
    kernels::unrolled<6>([&](auto row) {
      const float scale = a[p * 6 + row];
      sums[2 * row] = Simd::multiply_add(scale, left, sums[2 * row]);
      sums[2 * row + 1] = Simd::multiply_add(scale, right, sums[2 * row + 1]);
    });
  }
  kernels::unrolled<12>([&](auto i) { Simd::store(&c[i * Simd::width], sums[i]); });
}

template <class F>
double nanoseconds(F f) {
  using Clock = std::chrono::steady_clock;
  constexpr int calls = 200, runs = 300;
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < runs; ++run) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) f();
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  return best / calls;
}

template <class Simd>
void print_row(std::string_view name) {
  const Values x = inputs();
  Values y{};
  const auto used = [&] { asm volatile("" : : "g"(&y) : "memory"); };
  const double exp_ns = nanoseconds([&] { exp_of<Simd>(x, y), used(); });
  double error = 0;
  for (std::size_t i = 0; i < length; ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    const float near = static_cast<float>(exact);
    error = std::max(error, std::abs(static_cast<double>(y[i]) - exact) /
                                static_cast<double>(std::nextafter(near, 2.0f) - near));
  }
  const double sum_ns = nanoseconds([&] { y[0] = sum_of<Simd>(x), used(); });
  const double tile_ns = nanoseconds([&] { tile_product<Simd>(x, x, y), used(); });
  fmt::print("| {} | {:.0f} | {:.2f} | {:.0f} | {:.0f} |\n", name, exp_ns, error, sum_ns, tile_ns);
}

}  // namespace

int main() {
  fmt::print(
      "| vectors of {} floats | exp of {} values (ns) | error (ulp) | their sum (ns) | tile of a "
      "product, 6 x {} x {} (ns) |\n|---|---:|---:|---:|---:|\n",
      Ours::width, length, 2 * Ours::width, depth);
  for (int round = 0; round < 2; ++round) {
    print_row<Ours>("ours");
    print_row<Highway>("Highway");
    print_row<Xsimd>("xsimd");
  }
}
