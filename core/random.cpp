#include "core/random.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace qkv {

Random::Random(std::uint64_t seed, Purpose purpose, std::uint64_t step)
    : seed_(seed), step_(step), purpose_(static_cast<std::uint32_t>(purpose)) {}

Random Random::next() {
  Random stream = *this;
  stream.stream_ = ++streams_;
  stream.streams_ = 0;
  return stream;
}

std::uint32_t Random::bits(std::uint64_t index) const {
  std::uint32_t value;
  bits(index, {&value, 1});
  return value;
}

void Random::bits(std::uint64_t first, std::span<std::uint32_t> to) const {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  // Index below 2^50, step below 2^46, 2^24 streams and 256 purposes fill the counter's 128 bits.
  const r123::Philox4x32::key_type key = {{low(seed_), high(seed_)}};
  std::size_t done = 0;
  for (std::uint64_t block = first / 4, from = first % 4; done < to.size(); ++block, from = 0) {
    const auto four = r123::Philox4x32()(
        {{low(block), low(step_), high(block) << 14 | high(step_), purpose_ << 24 | stream_}}, key);
    for (; from < 4 && done < to.size(); ++from) to[done++] = four[from];
  }
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
