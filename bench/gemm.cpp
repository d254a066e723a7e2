// Matrix products of the shapes that the configs use, by the engine that was built (QKV_GEMM): a
// line for each shape and number of threads, "name;transposed;m;n;k;threads;GFLOP/s". Read by
// bench/compare_gemm.
#include "core/kernels/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include "core/parallel.h"

namespace {

using namespace qkv;
using kernels::Matrix;

/// One product C[m x n] = A[m x k] B[k x n] of a training step.
struct Product {
  std::string_view use;
  Index m, n, k;
  bool transpose_a = false, transpose_b = false;
  bool in_block = false;  ///< computed by one thread, inside a block of attention
};

/// Forward, gradient by the input and gradient by the weight of a linear layer.
constexpr auto linear(std::string_view use, Index rows, Index in, Index out) {
  return std::array{Product{use, rows, out, in, false, true}, Product{use, rows, in, out},
                    Product{use, in, out, rows, true}};
}

std::vector<Product> products() {
  std::vector<Product> all = {
      {"static: a pair of words", 6, 1, 32},
      {"toy: scores of a head", 8, 8, 8, false, true, true},
      {"bank: scores of a head", 17, 16, 8, false, true, true},
      {"baby: scores of a head", 64, 16, 32, false, true, true},
      {"baby: gradient of values", 48, 32, 32, false, false, true},
      {"medium: gradient of values", 240, 64, 32, false, false, true},
      {"long: gradient of values", 4080, 16, 32, false, false, true},
  };
  for (const auto& layer :
       {linear("long-range: feed-forward", 48, 16, 128), linear("toy: feed-forward", 128, 32, 128),
        linear("bank: projection", 320, 32, 32), linear("bank: feed-forward", 320, 32, 128),
        linear("induction: projection", 176, 64, 64), linear("small: feed-forward", 256, 64, 256),
        linear("baby: projection", 384, 128, 128), linear("baby: feed-forward", 384, 128, 512),
        linear("medium: projection", 256, 384, 384), linear("medium: feed-forward", 256, 384, 1536),
        linear("long: feed-forward", 4096, 64, 256)})
    all.insert(all.end(), layer.begin(), layer.end());
  return all;
}

/// The best of several runs of some milliseconds, by one call of the engine or shared by threads.
double gflops(const Product& p, bool one_call) {
  const auto size = [](Index rows, Index columns) {
    return static_cast<std::size_t>(rows * columns);
  };
  const std::vector<float> a(size(p.m, p.k), 0.5F), b(size(p.k, p.n), 0.25F);
  std::vector<float> c(size(p.m, p.n));
  const auto multiply = [&] {
    (p.in_block || one_call
         ? kernels::gemm<float>
         : kernels::parallel_gemm<float>)(p.m, p.n, p.k, 1,
                                          {a.data(), p.transpose_a ? p.m : p.k, p.transpose_a},
                                          {b.data(), p.transpose_b ? p.k : p.n, p.transpose_b}, 0,
                                          Matrix<float>{c.data(), p.n});
  };
  const double operations = 2e-9 * static_cast<double>(p.m * p.n * p.k);
  const auto repeats = static_cast<int>(std::clamp(0.1 / operations, 3.0, 20000.0));
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) multiply();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, operations * repeats / seconds.count());
  }
  return best;
}

}  // namespace

int main() {
  for (const Product& p : products())
    for (const int count : {1, 2}) {
      if (p.in_block && count > 1) continue;
      set_threads(count);
      fmt::print("{};{}{};{};{};{};{};{:.2f}\n", p.use, p.transpose_a ? "T" : "N",
                 p.transpose_b ? "T" : "N", p.m, p.n, p.k, count, gflops(p, count == 1));
    }
}
