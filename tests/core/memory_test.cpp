#include "core/memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "core/ops.h"

namespace qkv::tests {

TEST_CASE("a warm pool serves equal steps without system allocations") {
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  const auto step = [] {
    Tensor x = Tensor::full({100, 7}, 2);
    for (int i = 0; i < 5; ++i) x = tanh(x * x);
    return sum(x).item();
  };
  const double first = step();
  const std::size_t before = pool.system_bytes();
  CHECK(before > 0);
  CHECK(step() == first);
  CHECK(pool.system_bytes() == before);
}

TEST_CASE("a pool's block is large enough for every size and is not reused until released") {
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  std::vector<Tensor> tensors;
  for (Index size = 0; size < 3000; size += 7)
    tensors.push_back(Tensor::full({size}, static_cast<double>(size)));
  for (const Tensor& x : tensors)
    CHECK(std::ranges::all_of(x.data<float>(),
                              [&](float v) { return v == static_cast<float>(x.size()); }));
}

TEST_CASE("a request takes a free block of up to twice its size, and of no other") {
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  const auto allocated_for = [&](Index size) {
    const std::size_t before = pool.system_bytes();
    Tensor::zeros({size});
    return pool.system_bytes() - before;
  };
  CHECK(allocated_for(10000) >= 40000);
  CHECK(allocated_for(6000) == 0);
  CHECK(allocated_for(3000) >= 12000);
  CHECK(allocated_for(3200) >= 12800);  // of the next class
  CHECK(allocated_for(10000) == 0);
}

TEST_CASE("trimmed, a pool has no free block, and those in use stay as they are") {
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  const Tensor kept = Tensor::full({1000}, 3);
  const std::size_t one = pool.system_bytes();
  Tensor::zeros({1000});
  pool.trim();
  Tensor::zeros({1000});
  CHECK(pool.system_bytes() == 3 * one);
  CHECK(sum(kept).item() == 3000);
}

TEST_CASE("tensors outlive the pool they came from and may be freed on another thread") {
  Tensor kept;
  {
    MemoryPool pool;
    const MemoryPool::Use use(pool);
    kept = Tensor::full({1000}, 3);
  }
  CHECK(sum(kept).item() == 3000);
  std::thread([tensor = std::move(kept)]() mutable { tensor = {}; }).join();
}

}  // namespace qkv::tests
