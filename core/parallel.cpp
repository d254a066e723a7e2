#include "core/parallel.h"

#include <omp.h>

#include "core/error.h"

namespace qkv {

void set_threads(int count) {
  require<ValueError>(count >= 1, "[set_threads] needs at least 1 thread, got {}", count);
  omp_set_num_threads(count);
}

int threads() {
  return omp_get_max_threads();
}

Pieces cut(Index length, Index cost) {
  constexpr Index worthwhile = Index{1} << 16;
  constexpr Index most = 16;
  const Index work = length * std::max<Index>(cost, 1);
  return {length, std::clamp<Index>(work / worthwhile, 1, std::clamp<Index>(length, 1, most))};
}

void detail::parallel(Index count, void (*call)(const void*, Index), const void* f) {
#pragma omp parallel for schedule(static)
  for (Index i = 0; i < count; ++i) call(f, i);
}

}  // namespace qkv
