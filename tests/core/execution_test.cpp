#include "core/execution.h"

#include <doctest/doctest.h>

#include "core/autograd.h"
#include "core/joining_thread.h"
#include "core/memory.h"
#include "core/ops.h"
#include "core/parallel.h"
#include "core/parameter.h"

namespace qkv::tests {
namespace {

bool records(const Parameter& p) {
  return (p.value() + p.value()).node() != nullptr;
}

bool detects() {
  try {
    log(Tensor::from({-1}, {1}));
    return false;
  } catch (const AnomalyError&) {
    return true;
  }
}

/// Whether a new tensor comes from `pool`.
bool allocates_from(const MemoryPool& pool) {
  const std::size_t before = pool.system_bytes();
  static_cast<void>(Tensor::zeros({1000}));
  return pool.system_bytes() > before;
}

}  // namespace

TEST_CASE("scopes nest, change their own setting alone and end with what was before") {
  const Parameter p(Tensor::zeros({2}));
  MemoryPool pool;
  CHECK(records(p));
  CHECK_FALSE(detects());
  {
    const NoGrad no_grad;
    const DetectAnomaly detect;
    CHECK_FALSE(records(p));
    CHECK(detects());
    {
      const MemoryPool::Use use(pool);
      CHECK(allocates_from(pool));
      const ExecutionScope defaults{Execution()};
      CHECK(records(p));
      CHECK_FALSE(detects());
    }
    CHECK_FALSE(records(p));
    CHECK_FALSE(allocates_from(pool));
  }
  CHECK(records(p));
  CHECK_FALSE(detects());
}

TEST_CASE("the executions of two threads are independent") {
  const Parameter p(Tensor::zeros({2}));
  MemoryPool pool;
  const NoGrad no_grad;
  const DetectAnomaly detect;
  const MemoryPool::Use use(pool);
  JoiningThread([&] {
    CHECK(records(p));
    CHECK_FALSE(detects());
    CHECK_FALSE(allocates_from(pool));
    const ExecutionScope scope(Execution::current().with(&Execution::records_graph, false));
  }).join();
  CHECK_FALSE(records(p));
  CHECK(detects());
}

TEST_CASE("shards on several threads inherit the caller's execution with one scope") {
  const int before = threads();
  set_threads(3);
  const Parameter p(Tensor::zeros({2}));
  const NoGrad no_grad;
  const DetectAnomaly detect;
  MemoryPool pools[6];
  bool inherited[6] = {};
  parallel_for(6, [&, execution = Execution::current()](Index i) {
    const ExecutionScope scope(execution.with(&Execution::memory, &pools[i]));
    inherited[i] = !records(p) && detects() && allocates_from(pools[i]);
  });
  set_threads(before);
  for (const bool each : inherited) CHECK(each);
}

}  // namespace qkv::tests
