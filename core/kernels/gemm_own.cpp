#include "core/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/kernels/depth.h"
#include "core/kernels/scratch.h"
#include "core/kernels/transpose.h"
#include "core/kernels/vector.h"
#include "core/parallel.h"

// The product is computed in tiles of C that stay in registers (Goto & van de Geijn 2008, "Anatomy
// of High-Performance Matrix Multiplication"): B is packed block by block into panels of adjacent
// elements, A is read in place. For the matrices of small models, where a library's general path
// spends much of its time on packing, this is faster.
namespace qkv::kernels {
namespace {

#if defined(__AVX512F__)
constexpr int tile_rows = 8, tile_vectors = 3;
#elif defined(__aarch64__)
// 16 sums, 2 vectors of B and the elements of A fit into the 32 registers; GCC spills with 24 sums.
constexpr int tile_rows = 8, tile_vectors = 2;
#elif defined(__wasm__)
constexpr int tile_rows = 5, tile_vectors = 2;  // 6 rows take a ninth longer in V8
#else
constexpr int tile_rows = 6, tile_vectors = 2;
#endif

template <class T>
constexpr int panel_width = tile_vectors* width<T>;

/// Elements of B that are packed at once.
constexpr Index most_packed = Index{1} << 17;
/// A matrix B of at most so many elements is read in place.
constexpr Index in_cache = Index{1} << 16;
#if !defined(__AVX512F__)
/// Unless so many rows of A pay for packing one that is larger than the L1 cache: of its rows,
/// which are often a power of two apart, only some can be there at a time.
constexpr Index paying_rows = 48, in_first_cache = Index{1} << 13;
#else
constexpr Index paying_rows = 0, in_first_cache = in_cache;  // a panel has two lines of a row
#endif

/// Whether B[k x n], which is not transposed, is read in place to multiply m rows of A.
constexpr bool reads_in_place(Index m, Index k, Index n) {
  return k * n <= (m < paying_rows ? in_cache : in_first_cache);
}
/// Columns of A at most so many elements apart are read in place.
constexpr Index near = 64;
/// Rows of A that stay in the L2 cache while all of B is read.
constexpr Index block_rows = Index{6} * tile_rows;
/// Packing an element takes as long as so many operations.
constexpr Index packing_cost = 4;

/// Element (i, j) of an operand is at data + i row + j column.
template <class T>
struct Strided {
  const T* data;
  Index row, column;

  const T* at(Index i, Index j) const { return data + i * row + j * column; }
  Strided from(Index i, Index j) const { return {at(i, j), row, column}; }
  Strided transposed() const { return {data, column, row}; }
};

template <class T>
Strided<T> strided(const Matrix<const T>& m) {
  return {m.data, m.transposed ? 1 : m.stride, m.transposed ? m.stride : 1};
}

/// One block of a product: C[rows x columns] = alpha A[rows x k] B[k x columns] + beta C.
template <class T>
struct Block {
  Index k;
  const T* a;
  Index a_row, a_column;
  const T* b;
  Index b_row;
  T alpha, beta;
  T* c;
  Index c_row;
  Index columns;
};

/// C = alpha sums + beta C
template <class T, int Rows, int Vectors>
void put(const Vector<T> (&from)[Rows][Vectors], const Block<T>& block) {
  // A copy: clang would keep in memory what the closures refer to, and store each sum in each step.
  Vector<T> sums[Rows][Vectors];
  unrolled<Rows>([&](auto r) { unrolled<Vectors>([&](auto v) { sums[r][v] = from[r][v]; }); });
  // Elements in the last vector of a row.
  const Index last = block.columns - (Vectors - 1) * width<T>;
  if (block.alpha != 1)
    unrolled<Rows>([&, alpha = block.alpha](auto r) {
      unrolled<Vectors>([&](auto v) { sums[r][v] *= alpha; });
    });
  // Stores f(sum, old) to C, where `old()` loads the previous elements.
  const auto store_all = [&, first = block.c, step = block.c_row](auto f) {
    unrolled<Rows>([&](auto r) {
      unrolled<Vectors>([&](auto v) {
        T* c = first + r * step + v * width<T>;
        if (v < Vectors - 1 || last == width<T>)
          store<T>(c, f(sums[r][v], [=] { return load(c); }));
        else
          store_part<T>(c, f(sums[r][v], [=] { return load_part(c, last); }), last);
      });
    });
  };
  if (block.beta == 0)
    store_all([](const Vector<T>& sum, auto) { return sum; });
  else
    store_all([beta = block.beta](const Vector<T>& sum, auto old) { return sum + beta * old(); });
}

/// A tile of `Rows` rows and `Vectors` vectors; the last vector may extend beyond the columns of C.
template <class T, int Rows, int Vectors>
[[gnu::flatten]] void tile(const Block<T>& block) {
  Vector<T> sums[Rows][Vectors];
  unrolled<Rows>([&](auto r) { unrolled<Vectors>([&](auto v) { sums[r][v] = Vector<T>{}; }); });
  // Elements in the last vector of a row.
  const Index last = block.columns - (Vectors - 1) * width<T>;
  const auto add_products = [&](auto load_last) {
    const T *a = block.a, *b = block.b;
#pragma GCC unroll 2
    for (Index k = 0; k < block.k; ++k, a += block.a_column, b += block.b_row) {
      Vector<T> row[Vectors];
      unrolled<Vectors>([&](auto v) {
        row[v] = v < Vectors - 1 ? load(b + v * width<T>) : load_last(b + v * width<T>);
      });
      unrolled<Rows>([&](auto r) {
        const T factor = a[r * block.a_row];
        unrolled<Vectors>([&](auto v) { sums[r][v] += factor * row[v]; });
      });
    }
  };
  // Two loops: a test in the innermost one would cost a tenth of its time.
  if (last == width<T>)
    add_products([](const T* x) { return load(x); });
  else
    add_products([last](const T* x) { return load_part(x, last); });
  put<T, Rows, Vectors>(sums, block);
}

template <class T>
using Tile = void (*)(const Block<T>&);

/// tiles[rows - 1][vectors - 1]
template <class T>
constexpr auto tiles = []<int... R>(std::integer_sequence<int, R...>) {
  const auto of_rows = []<int Rows, int... V>(std::integer_sequence<int, V...>) {
    return std::array<Tile<T>, tile_vectors>{tile<T, Rows, V + 1>...};
  };
  return std::array{
      of_rows.template operator()<R + 1>(std::make_integer_sequence<int, tile_vectors>())...};
}
(std::make_integer_sequence<int, tile_rows>());

/// A vector of columns of a product with `Rows` rows and a transposed B, whose columns are
/// contiguous and start `b_row` apart: squares of B are transposed in registers.
template <class T, int Rows>
[[gnu::flatten]] void transposed_tile(const Block<T>& block) {
  Vector<T> sums[Rows][1];
  unrolled<Rows>([&](auto r) { sums[r][0] = Vector<T>{}; });
  for (Index k = 0; k < block.k; k += width<T>) {
    const Index depth = std::min<Index>(width<T>, block.k - k);
    const T* a = block.a + k * block.a_column;
    Vector<T> rows[width<T>];
    load_rows<T>(depth, block.columns, block.b + k, block.b_row, rows);
    transpose_rows<T>(rows);
    const auto add_row = [&](auto i) {
      unrolled<Rows>([&](auto r) {
        const T factor = a[r * block.a_row + i * block.a_column];
        sums[r][0] += factor * rows[i];
      });
    };
    if (depth == width<T>)
      unrolled<width<T>>(add_row);
    else
      unrolled<width<T> - 1>([&](auto i) {
        if (i < depth) add_row(i);
      });
  }
  put<T, Rows, 1>(sums, block);
}

/// transposed_tiles[rows - 1]
template <class T>
constexpr auto transposed_tiles = []<int... R>(std::integer_sequence<int, R...>) {
  return std::array<Tile<T>, tile_rows>{transposed_tile<T, R + 1>...};
}
(std::make_integer_sequence<int, tile_rows>());

/// Transposes k columns of n rows, both at most a vector's width: x[j stride + i] to
/// y[i panel_width + j], with zeros for the missing rows.
template <class T>
[[gnu::flatten]] void transpose_block(Index k, Index n, const T* x, Index stride, T* y) {
  Vector<T> rows[width<T>];
  load_rows<T>(k, n, x, stride, rows);
  transpose_rows<T>(rows);
  unrolled<width<T>>([&](auto i) {
    if (i < k) store<T>(y + i * panel_width<T>, rows[i]);
  });
}

/// Copies n elements of a row, padded with zeros to whole vectors.
template <class T>
void copy_row(Index n, const T* from, T* to) {
  Index j = 0;
  for (; j + width<T> <= n; j += width<T>) store<T>(to + j, load(from + j));
  if (j < n) store<T>(to + j, load_part(from + j, n - j));
}

/// Copies n columns, at most panel_width, of k rows of a transposed B, whose columns are contiguous
/// and start `stride` apart.
template <class T>
void transpose_panel(Index k, Index n, const T* from, Index stride, T* to) {
  for (Index j = 0; j < n; j += width<T>)
    for (Index i = 0; i < k; i += width<T>)
      transpose_block(std::min<Index>(width<T>, k - i), std::min<Index>(width<T>, n - j),
                      from + i + j * stride, stride, to + i * panel_width<T> + j);
}

/// B[k x n], where k is at most a block's depth, in panels of `panel_width` columns.
template <class T>
class Panels {
 public:
  /// For m rows of A.
  Panels(Index m, Index k, Index n, const Strided<T>& b, bool transposed)
      : k_(k),
        n_(n),
        b_(b),
        transposed_(transposed),
        in_place_(!transposed && reads_in_place(m, k, n)),
        data_(in_place_ ? 0 : std::max(most_packed, count() * panel_width<T> * k)) {}

  /// Chunks that threads may pack in parallel: panels of a transposed B, else runs of rows, so that
  /// B is read sequentially.
  Index chunks() const {
    if (in_place_) return 0;
    return transposed_ ? count() : (k_ + run_rows - 1) / run_rows;
  }
  void pack(Index chunk) const {
    if (transposed_)
      transpose(chunk * panel_width<T>);
    else
      copy_rows(chunk * run_rows, std::min(k_, (chunk + 1) * run_rows));
  }
  /// The panel that starts at `column`.
  const T* at(Index column) const { return in_place_ ? b_.at(0, column) : packed(column); }
  /// Elements from one row of a panel to the next.
  Index step() const { return in_place_ ? b_.row : panel_width<T>; }

 private:
  static constexpr Index run_rows = 32;

  Index count() const { return (n_ + panel_width<T> - 1) / panel_width<T>; }
  T* packed(Index column) const { return data_.data() + column * k_; }
  void transpose(Index column) const {
    const Index columns = std::min<Index>(panel_width<T>, n_ - column);
    for (Index j = column; j < column + columns; ++j)
      for (Index i = 0; i < k_; i += width<T>) __builtin_prefetch(b_.at(i, j));
    transpose_panel(k_, columns, b_.at(0, column), b_.column, packed(column));
  }
  void copy_rows(Index row, Index end) const {
    for (; row < end; ++row) {
      const T* from = b_.at(row, 0);
      T* to = packed(0) + row * panel_width<T>;
      Index column = 0;
      for (; column + panel_width<T> <= n_; column += panel_width<T>, to += panel_width<T> * k_)
        copy_row(panel_width<T>, from + column, to);
      if (column < n_) copy_row(n_ - column, from + column, to);
    }
  }

  Index k_, n_;
  Strided<T> b_;
  bool transposed_, in_place_;
  Scratch<T> data_;
};

/// Packs A[m x k], whose columns are contiguous, tile by tile: k rows of tile_rows elements.
template <class T>
void pack_tiles(Index m, Index k, const Strided<T>& a, T* to) {
  for (Index p = 0; p < k; ++p, to += tile_rows) {
    const T* from = a.at(0, p);
    Index i = 0;
    for (; i + tile_rows <= m; i += tile_rows)
      __builtin_memcpy(to + i * k, from + i, tile_rows * sizeof(T));
    // Unrolled: a call of memcpy for a few bytes would take as long as the other tiles together.
    unrolled<tile_rows - 1>([&](int r) {
      if (r < m - i) to[i * k + r] = from[i + r];
    });
  }
}

/// Multiplies `rows` rows of A, whose tiles start `a_step` elements apart, by one panel.
template <class T>
void multiply_panel(Block<T> block, Index rows, Index a_step) {
  const auto vectors = static_cast<std::size_t>((block.columns + width<T> - 1) / width<T>);
  for (; rows > 0; rows -= tile_rows) {
    const auto height = static_cast<std::size_t>(std::min<Index>(tile_rows, rows));
    tiles<T>[height - 1][vectors - 1](block);
    block.a += a_step;
    block.c += tile_rows * block.c_row;
  }
}

/// C[m x n] = alpha A B + beta C, where k is at most a block's depth.
template <class T>
void multiply_panels(Index m, Index n, Index k, T alpha, const Strided<T>& a, const Panels<T>& b,
                     T beta, const Matrix<T>& c) {
  const bool far_apart = a.row == 1 && a.column > near;
  const Scratch<T> packed(far_apart ? block_rows * k : 0);
  for (Index i = 0; i < m; i += block_rows) {
    const Index rows = std::min(block_rows, m - i);
    Strided<T> block = a.from(i, 0);
    if (far_apart) {
      pack_tiles(rows, k, block, packed.data());
      block = {packed.data(), 1, tile_rows};
    }
    for (Index j = 0; j < n; j += panel_width<T>)
      multiply_panel(
          Block<T>{k, block.data, block.row, block.column, b.at(j), b.step(), alpha, beta,
                   c.data + i * c.stride + j, c.stride, std::min<Index>(panel_width<T>, n - j)},
          rows, tile_rows * (far_apart ? k : a.row));
  }
}

/// `multiply_panels` where B is one panel and A is read in place.
template <class T>
void one_panel(Index m, Index n, Index k, T alpha, const Strided<T>& a, const Matrix<const T>& b,
               T beta, const Matrix<T>& c) {
  const Scratch<T> panel(b.transposed ? k * panel_width<T> : 0);
  if (b.transposed) transpose_panel(k, n, b.data, b.stride, panel.data());
  multiply_panel(
      Block<T>{k, a.data, a.row, a.column, b.transposed ? panel.data() : b.data,
               b.transposed ? panel_width<T> : b.stride, alpha, beta, c.data, c.stride, n},
      m, tile_rows * a.row);
}

/// Calls f(k0, depth, j0, columns) for each block of B[k x n] that is packed at once.
template <class T, class F>
void for_each_block(Index k, Index n, F f) {
  const Index depth = depth_of(k);
  const Index columns = std::max<Index>(most_packed / (depth * panel_width<T>), 1) * panel_width<T>;
  Index k0 = 0;
  do {
    for (Index j0 = 0; j0 < n; j0 += columns)
      f(k0, std::min(depth, k - k0), j0, std::min(columns, n - j0));
  } while ((k0 += depth) < k);
}

/// A product of few rows with a transposed B, which is not packed.
template <class T>
void transposed_columns(Index m, Index n, Index k, T alpha, const Strided<T>& a,
                        const Matrix<const T>& b, T beta, const Matrix<T>& c) {
  const Tile<T> tile = transposed_tiles<T>[static_cast<std::size_t>(m) - 1];
  const Index depth = depth_of(k);
  for (Index j = 0; j < n; j += width<T>) {
    Index k0 = 0;
    do {
      tile({std::min(depth, k - k0), a.at(0, k0), a.row, a.column, b.data + j * b.stride + k0,
            b.stride, alpha, k0 ? T{1} : beta, c.data + j, c.stride,
            std::min<Index>(width<T>, n - j)});
    } while ((k0 += depth) < k);
  }
}

/// C = alpha A B of one column, which is a row of the transposed product.
template <class T>
void one_column(Index m, Index k, T alpha, const Matrix<const T>& a, const Strided<T>& b,
                const Matrix<T>& c) {
  std::array<T, width<T>> row;
  for (Index i = 0; i < m; i += width<T>) {
    const Index count = std::min<Index>(width<T>, m - i);
    // The processor does not read ahead over rows that are far apart.
    for (Index j = i + 2 * width<T>; j < std::min<Index>(i + 3 * width<T>, m); ++j)
      for (Index l = 0; l < k; l += 64 / Index{sizeof(T)})
        __builtin_prefetch(a.data + j * a.stride + l);
    transposed_columns(1, count, k, alpha, b.transposed(),
                       Matrix<const T>{a.data + i * a.stride, a.stride, true}, T{0},
                       Matrix<T>{row.data(), width<T>});
    for (Index j = 0; j < count; ++j) c.data[(i + j) * c.stride] = row[static_cast<std::size_t>(j)];
  }
}

}  // namespace

const bool product_rows_are_independent = true;

template <class T>
void gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
          Matrix<T> c) {
  if (n == 1 && beta == 0 && !a.transposed) return one_column(m, k, alpha, a, strided(b), c);
  if (n > 0 && n <= panel_width<T> && k <= most_depth && (!a.transposed || a.stride <= near))
    return one_panel(m, n, k, alpha, strided(a), b, beta, c);
  for_each_block<T>(k, n, [&](Index k0, Index depth, Index j0, Index columns) {
    const Panels<T> panels(m, depth, columns, strided(b).from(k0, j0), b.transposed);
    for (Index chunk = 0; chunk < panels.chunks(); ++chunk) panels.pack(chunk);
    multiply_panels(m, columns, depth, alpha, strided(a).from(0, k0), panels, k0 ? T{1} : beta,
                    Matrix<T>{c.data + j0, c.stride});
  });
}

/// `few_rows` for a transposed B, which is not packed.
template <class T>
void few_rows_transposed(Index m, Index n, Index k, T alpha, const Strided<T>& a,
                         const Matrix<const T>& b, T beta, const Matrix<T>& c) {
  parallel_for(partition((n + width<T> - 1) / width<T>, width<T> * k), [&](Index begin, Index end) {
    const Index j = begin * width<T>;
    transposed_columns(m, std::min(end * width<T>, n) - j, k, alpha, a,
                       Matrix<const T>{b.data + j * b.stride, b.stride, true}, beta,
                       Matrix<T>{c.data + j, c.stride});
  });
}

/// `parallel_gemm` for few rows of A: threads take panels of B, each of which is multiplied while
/// it is in the cache, rather than rows.
template <class T>
void few_rows(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
              Matrix<T> c) {
  if (b.transposed) return few_rows_transposed(m, n, k, alpha, strided(a), b, beta, c);
  constexpr Index wide = panel_width<T>;
  const auto panel = [=](Index j) {
    gemm(m, std::min(wide, n - j), k, alpha, a,
         Matrix<const T>{strided(b).at(0, j), b.stride, b.transposed}, beta,
         Matrix<T>{c.data + j, c.stride});
  };
  parallel_for(partition((n + wide - 1) / wide, wide * k), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) panel(i * wide);
  });
}

template <class T>
void parallel_gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
                   Matrix<T> c) {
  if (m > 0 && m <= tile_rows && n > panel_width<T>) return few_rows(m, n, k, alpha, a, b, beta, c);
  for_each_block<T>(k, n, [&](Index k0, Index depth, Index j0, Index columns) {
    const Panels<T> panels(m, depth, columns, strided(b).from(k0, j0), b.transposed);
    const Index pieces = std::max<Index>(panels.chunks(), 1);
    parallel_for(partition(panels.chunks(), packing_cost * columns * depth / pieces),
                 [&](Index begin, Index end) {
                   for (Index chunk = begin; chunk < end; ++chunk) panels.pack(chunk);
                 });
    // Fewer, taller pieces keep more of B in the cache.
    const Index most = std::max(m / 128, std::clamp<Index>(m / 32, 1, 8));
    const Index tiles = (m + tile_rows - 1) / tile_rows;
    parallel_for(partition(tiles, tile_rows * columns * depth / 8, most), [&](Index i, Index end) {
      const Index first = i * tile_rows, rows = std::min(end * tile_rows, m) - first;
      multiply_panels(rows, columns, depth, alpha, strided(a).from(first, k0), panels,
                      k0 ? T{1} : beta, Matrix<T>{c.data + first * c.stride + j0, c.stride});
    });
  });
}

template void gemm(Index, Index, Index, float, Matrix<const float>, Matrix<const float>, float,
                   Matrix<float>);
template void gemm(Index, Index, Index, double, Matrix<const double>, Matrix<const double>, double,
                   Matrix<double>);
template void parallel_gemm(Index, Index, Index, float, Matrix<const float>, Matrix<const float>,
                            float, Matrix<float>);
template void parallel_gemm(Index, Index, Index, double, Matrix<const double>, Matrix<const double>,
                            double, Matrix<double>);

}  // namespace qkv::kernels
