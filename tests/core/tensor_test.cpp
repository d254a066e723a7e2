#include "core/tensor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "core/memory.h"
#include "core/ops.h"
#include "core/parameter.h"
#include "core/random.h"

namespace qkv::tests {

TEST_CASE("a shared tensor cannot be changed, its own copy can") {
  Tensor x = Tensor::from({1, 2}, {2});
  const Tensor y = x;
  CHECK_THROWS_AS(x.mutable_data<float>(), ValueError);
  x = own(std::move(x));
  x.mutable_data<float>()[0] = 5;
  CHECK(y.values() == std::vector<double>{1, 2});
}

TEST_CASE("with_shape refuses a tensor with history, whose gradient would keep the old shape") {
  const Parameter p(Tensor::zeros({2, 3}));
  CHECK_THROWS_AS(p.value().with_shape({6}), ValueError);
  CHECK(p.value().detach().with_shape({6}).shape() == Shape{6});
  CHECK(gradients_of(sum(reshape(p, {6}))).of(p).shape() == Shape{2, 3});
}

TEST_CASE("a tensor holds its numbers row by row and says its shape and type") {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.dim(-1) == 3);
  CHECK(x.size() == 6);
  CHECK(x.data<float>()[4] == 5.0f);
  CHECK(x.to(DType::float64).data<double>()[4] == 5.0);
  CHECK(to_string(x.shape()) == "(2, 3)");
  CHECK_FALSE(Tensor());
}

TEST_CASE("reading a tensor as another type is an error that names both") {
  CHECK_THROWS_WITH_AS(Tensor::zeros({2}).data<double>(),
                       "[tensor] holds float32, not float64; convert it with to()", TypeError);
}

TEST_CASE("values that do not fill the shape, and item() of several, are errors") {
  CHECK_THROWS_AS(Tensor::from({1, 2}, {3}), ShapeError);
  CHECK_THROWS_AS(Tensor::zeros({3}).item(), ShapeError);
  CHECK_THROWS_AS(Indices({1}, {2}), ShapeError);
}

TEST_CASE("shapes refuse negative sizes, too many axes and products that overflow") {
  CHECK_THROWS_AS((Shape{2, -1}), ShapeError);
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1, 1}), ShapeError);
  const Index large = Index{1} << 40;
  CHECK_THROWS_AS((Shape{large, large}), ShapeError);
}

TEST_CASE("a warm pool serves equal steps without asking the system") {
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  const auto step = [] {
    Tensor x = Tensor::full({100, 7}, 2);
    for (int i = 0; i < 5; ++i) x = tanh(x * x);
    return sum(x).item();
  };
  const double first = step();
  const std::size_t before = pool.system_allocations();
  CHECK(before > 0);
  CHECK(step() == first);
  CHECK(pool.system_allocations() == before);
}

TEST_CASE("a pool's block is large enough for every size and stays its owner's until released") {
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  std::vector<Tensor> tensors;
  for (Index size = 0; size < 3000; size += 7)
    tensors.push_back(Tensor::full({size}, static_cast<double>(size)));
  for (const Tensor& x : tensors)
    CHECK(std::ranges::all_of(x.data<float>(),
                              [&](float v) { return v == static_cast<float>(x.size()); }));
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

TEST_CASE("random numbers are a pure function of seed, purpose, step, stream and index") {
  const Random a(1, Purpose::dropout, 5);
  CHECK(a.bits(10) == Random(1, Purpose::dropout, 5).bits(10));
  CHECK(a.bits(10) != a.bits(11));
  CHECK(a.bits(10) != Random(2, Purpose::dropout, 5).bits(10));
  CHECK(a.bits(10) != Random(1, Purpose::shuffling, 5).bits(10));
  CHECK(a.bits(10) != Random(1, Purpose::dropout, 6).bits(10));
  CHECK(a.bits(10) != Random(1, Purpose::dropout, (std::uint64_t{1} << 32) + 5).bits(10));
  Random b = a, c = a;
  CHECK(b.next().bits(10) == c.next().bits(10));
  CHECK(b.next().bits(10) != a.bits(10));
}

TEST_CASE("random numbers have the moments of their distributions") {
  const Random random(3, Purpose::testing);
  double uniform = 0, normal = 0, square = 0;
  constexpr int n = 20'000;
  for (std::uint64_t i = 0; i < n; ++i) {
    uniform += random.uniform(i);
    normal += random.normal(i);
    square += random.normal(i) * random.normal(i);
  }
  CHECK(uniform / n == doctest::Approx(0.5).epsilon(0.01));
  CHECK(std::abs(normal / n) < 0.02);
  CHECK(square / n == doctest::Approx(1).epsilon(0.02));
}

TEST_CASE("a permutation holds every number once and differs between steps") {
  auto order = Random(1, Purpose::shuffling, 0).permutation(100);
  CHECK(order != Random(1, Purpose::shuffling, 1).permutation(100));
  std::ranges::sort(order);
  for (Index i = 0; i < 100; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

}  // namespace qkv::tests
