#pragma once

#include <algorithm>
#include <memory>

#include "core/shape.h"

namespace qkv {

/// The most chunks of a loop: more threads find nothing to do in it.
constexpr Index most_chunks = 16;

/// Sets how many threads `parallel_for` may use; the default is one for each of `usable_cores()`
/// (core/control_group.h), up to `most_chunks`. Results do not depend on it. Where the system
/// refuses to start some of them, there are fewer. The threads belong to the process, as the cores
/// do: all callers share them. With the thread-local `Execution` (core/execution.h) this is the
/// library's only global state.
void set_threads(int count);
/// Sets the default, up to `most_chunks`, of a process that shares its machine's cores with others.
void set_default_threads(int count);
int threads();

/// [0, length) divided into `count` chunks of almost equal size. The partition depends on the
/// problem alone, never on the number of threads, so that every sum is taken in the same order on
/// any machine.
struct Chunks {
  Index length, count;

  Index begin(Index chunk) const { return length * chunk / count; }
  Index end(Index chunk) const { return begin(chunk + 1); }
};

/// At most `most` chunks of `length` items of `cost` operations each, large enough to amortise
/// scheduling.
Chunks partition(Index length, Index cost, Index most = most_chunks);

namespace detail {
/// The default of a process that may use so many cores.
int default_threads(int cores);
void parallel(Index count, void (*call)(const void*, Index), const void* f);
void parallel_lanes(Index lanes, Index threads_per_lane, void (*call)(const void*, Index),
                    const void* f);
}  // namespace detail

/// Calls `f(i)` once for each i in [0, count), on several threads. One of the exceptions that calls
/// throw reaches the caller, once no call is running any more. Nested and concurrent calls run
/// serially on the calling thread. A thread's `Execution` is its own: work that records graphs or
/// allocates tensors inherits the caller's by an `ExecutionScope` in `f`.
template <class F>
void parallel_for(Index count, const F& f) {
  if (count == 1) return f(0);
  detail::parallel(
      count, [](const void* g, Index i) { (*static_cast<const F*>(g))(i); }, std::addressof(f));
}

/// Calls `f(begin, end)` for each chunk, on several threads.
template <class F>
void parallel_for(const Chunks& chunks, const F& f) {
  parallel_for(chunks.count, [&](Index i) { f(chunks.begin(i), chunks.end(i)); });
}

/// Calls `f(lane)` once for each of several lanes of work, on several threads: the loops of a call,
/// which has the caller's `Execution`, are shared by as many as each lane has. A single lane's are
/// shared by all.
template <class F>
void parallel_lanes(Index lanes, Index threads_per_lane, const F& f) {
  if (lanes == 1) return f(0);
  detail::parallel_lanes(
      lanes, threads_per_lane, [](const void* g, Index lane) { (*static_cast<const F*>(g))(lane); },
      std::addressof(f));
}

}  // namespace qkv
