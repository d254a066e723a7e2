#include "core/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/kernels/philox.h"

namespace qkv {
namespace {

constexpr std::uint32_t low(std::uint64_t x) {
  return static_cast<std::uint32_t>(x);
}
constexpr std::uint32_t high(std::uint64_t x) {
  return static_cast<std::uint32_t>(x >> 32);
}

}  // namespace

Random::Random(std::uint64_t seed, Purpose purpose, std::uint64_t step)
    : seed_(seed), step_(step), purpose_(static_cast<std::uint32_t>(purpose)) {}

Random Random::next() {
  Random stream = *this;
  stream.stream_ = ++streams_;
  stream.streams_ = 0;
  return stream;
}

template <class Word>
void Random::count(std::uint64_t first, const Word& offset, Word& a, Word& b, Word& c,
                   Word& d) const {
  // Index below 2^50, step below 2^46, 2^24 streams and 256 purposes fill the counter's 128 bits.
  a = offset + low(first);
  b = Word{} + low(step_);
  c = (high(first) - Word(a < offset)) << 14 | high(step_);
  d = Word{} + (purpose_ << 24 | stream_);
}

std::array<std::uint32_t, 4> Random::one_block(std::uint64_t number) const {
  std::uint32_t a[1], b[1], c[1], d[1];
  count(number, 0U, *a, *b, *c, *d);
  kernels::philox(a, b, c, d, low(seed_), high(seed_));
  return {*a, *b, *c, *d};
}

auto Random::blocks(std::uint64_t first) const {
  using kernels::Words;
  constexpr int vectors = 2;
  constexpr std::size_t size = kernels::width<std::uint32_t>;
  Words a[vectors], b[vectors], c[vectors], d[vectors];
  kernels::unrolled<vectors>([&](auto i) {
    count<Words>(first, kernels::lanes() + i * kernels::width<std::uint32_t>, a[i], b[i], c[i],
                 d[i]);
  });
  kernels::philox(a, b, c, d, low(seed_), high(seed_));
  std::array<std::uint32_t, 4 * size * vectors> values;
  kernels::unrolled<vectors>([&](auto i) {
    kernels::store_interleaved(values.data() + 4 * size * i, a[i], b[i], c[i], d[i]);
  });
  return values;
}

std::uint32_t Random::bits(std::uint64_t index) const {
  return one_block(index / 4)[index % 4];
}

void Random::bits(std::uint64_t first, std::span<std::uint32_t> to) const {
  const auto take = [&](const auto& values) {
    const std::size_t skipped = first % 4, count = std::min(to.size(), values.size() - skipped);
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(skipped), count, to.begin());
    to = to.subspan(count);
    first += count;
  };
  constexpr std::size_t few = 16;  // one block after the other takes no longer
  while (to.size() >= few) take(blocks(first / 4));
  while (!to.empty()) take(one_block(first / 4));
}

double Random::uniform(std::uint64_t index) const {
  return bits(index) * 0x1p-32;
}

double Random::normal(std::uint64_t index) const {
  const double radius = std::sqrt(-2 * std::log1p(-uniform(2 * index)));
  return radius * std::cos(2 * std::numbers::pi * uniform(2 * index + 1));
}

std::vector<Index> Random::permutation(Index n) const {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  for (std::size_t i = order.size(); i > 1; --i) {
    const auto j = static_cast<std::size_t>(uniform(i) * static_cast<double>(i));
    std::swap(order[i - 1], order[j]);
  }
  return order;
}

}  // namespace qkv
