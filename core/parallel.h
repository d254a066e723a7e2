#pragma once

#include <algorithm>
#include <memory>

#include "core/shape.h"

namespace qkv {

/// Sets how many threads `parallel_for` may use; the default is one for each core. Results do not
/// depend on it. The threads belong to the process, as the cores do: they are shared by all
/// callers.
void set_threads(int count);
int threads();

/// `length` cut into `count` runs of almost equal size. The cut depends on the problem alone, never
/// on the number of threads, so that every sum is taken in the same order on any machine.
struct Chunks {
  Index length, count;

  Index begin(Index piece) const { return length * piece / count; }
  Index end(Index piece) const { return begin(piece + 1); }
};

/// At most `most` pieces of `length` items of `cost` operations each, large enough to be worth a
/// thread's while.
Chunks partition(Index length, Index cost, Index most = 16);

namespace detail {
void parallel(Index count, void (*call)(const void*, Index), const void* f);
}

/// Calls `f(i)` once for each i in [0, count), on several threads. `f` must not throw.
template <class F>
void parallel_for(Index count, const F& f) {
  if (count == 1) return f(0);
  detail::parallel(
      count, [](const void* g, Index i) { (*static_cast<const F*>(g))(i); }, std::addressof(f));
}

/// Calls `f(begin, end)` for each piece, on several threads.
template <class F>
void parallel_for(const Chunks& pieces, const F& f) {
  parallel_for(pieces.count, [&](Index i) { f(pieces.begin(i), pieces.end(i)); });
}

}  // namespace qkv
