#pragma once

#include <cstdint>
#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/kernels/vector.h"

/// Random values of many counters at once.
namespace qkv::kernels {

/// A word of 32 bits of as many blocks as it has lanes.
using Words = Vector<std::uint32_t>;

constexpr auto word_lanes = std::make_integer_sequence<int, width<std::uint32_t>>();

/// 0, 1, 2, ...
inline Words lanes() {
  return []<int... Lane>(std::integer_sequence<int, Lane...>) {
    return Words{Lane...};
  }
  (word_lanes);
}

template <class Word>
struct Product {
  Word low, high;
};

inline Product<std::uint32_t> multiply(std::uint32_t x, std::uint32_t y) {
  const std::uint64_t product = std::uint64_t{x} * y;
  return {static_cast<std::uint32_t>(product), static_cast<std::uint32_t>(product >> 32)};
}

#if defined(__SSE2__)

/// The products of even lanes, 64 bits each.
inline Words multiply_even(const Words& x, const Words& y) {
#if defined(__AVX512F__)
  return Words(_mm512_maskz_mul_epu32(0xff, __m512i(x), __m512i(y)));
#elif defined(__AVX2__)
  return Words(_mm256_mul_epu32(__m256i(x), __m256i(y)));
#else
  return Words(_mm_mul_epu32(__m128i(x), __m128i(y)));
#endif
}

template <int... Lane>
Product<Words> multiply(const Words& x, std::uint32_t factor, std::integer_sequence<int, Lane...>) {
  constexpr int size = width<std::uint32_t>;
  const Words factors = broadcast(factor);
  const Words even = multiply_even(x, factors);
  const Words odd = multiply_even(Words(Vector<std::uint64_t>(x) >> 32), factors);
  return {__builtin_shufflevector(even, odd, (Lane % 2 ? size + Lane - 1 : Lane)...),
          __builtin_shufflevector(even, odd, (Lane % 2 ? size + Lane : Lane + 1)...)};
}

#else

/// The products of the lanes from `First` on, 64 bits each.
template <int First, int... Lane>
Words multiply_half(const Words& x, const Words& y, std::integer_sequence<int, Lane...>) {
  const auto half = [](const Words& words) {
    return __builtin_convertvector(__builtin_shufflevector(words, words, (First + Lane)...),
                                   Vector<std::uint64_t>);
  };
  return Words(half(x) * half(y));
}

template <int... Lane>
Product<Words> multiply(const Words& x, std::uint32_t factor, std::integer_sequence<int, Lane...>) {
  // Volatile, as LLVM makes products with a constant of 64-bit ones, which are many instructions.
  const volatile Words hidden = broadcast(factor);
  const Words factors = hidden;
  constexpr int half = width<std::uint32_t> / 2;
  constexpr auto lanes = std::make_integer_sequence<int, half>();
  const Words lower = multiply_half<0>(x, factors, lanes);
  const Words upper = multiply_half<half>(x, factors, lanes);
  return {__builtin_shufflevector(lower, upper, (2 * Lane)...),
          __builtin_shufflevector(lower, upper, (2 * Lane + 1)...)};
}

#endif

inline Product<Words> multiply(const Words& x, std::uint32_t factor) {
  return multiply(x, factor, word_lanes);
}

/// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): turns the
/// counters of blocks, four words each, into their random values. `Count` of each word are side by
/// side, as a round is a chain of operations.
template <class Word, int Count>
[[gnu::always_inline]] inline void philox(Word (&a)[Count], Word (&b)[Count], Word (&c)[Count],
                                          Word (&d)[Count], std::uint32_t key,
                                          std::uint32_t other_key) {
  for (int round = 0; round < 10; ++round) {
    unrolled<Count>([&](auto i) {
      const Product<Word> product = multiply(a[i], 0xD2511F53);
      const Product<Word> other = multiply(c[i], 0xCD9E8D57);
      a[i] = other.high ^ b[i] ^ key;
      b[i] = other.low;
      c[i] = product.high ^ d[i] ^ other_key;
      d[i] = product.low;
    });
    key += 0x9E3779B9;
    other_key += 0xBB67AE85;
  }
}

/// x0, y0, x1, y1, ... of the lanes from `First` on.
template <int First, class V, int... Lane>
V interleave(const V& x, const V& y, std::integer_sequence<int, Lane...>) {
  return __builtin_shufflevector(x, y,
                                 (First + Lane / 2 + (Lane % 2 ? int{sizeof...(Lane)} : 0))...);
}

/// Writes a word of each of a, b, c and d, then the next of each, and so on.
inline void store_interleaved(std::uint32_t* to, const Words& a, const Words& b, const Words& c,
                              const Words& d) {
  constexpr Index size = width<std::uint32_t>;
  using Pairs = Vector<std::uint64_t>;
  constexpr auto pair_lanes = std::make_integer_sequence<int, width<std::uint64_t>>();
  const auto store_half = [&](const Words& ab, const Words& cd) {
    const Pairs lower = interleave<0>(Pairs(ab), Pairs(cd), pair_lanes);
    const Pairs upper = interleave<size / 4>(Pairs(ab), Pairs(cd), pair_lanes);
    store<std::uint32_t>(to, Words(lower));
    store<std::uint32_t>(to + size, Words(upper));
    to += 2 * size;
  };
  store_half(interleave<0>(a, b, word_lanes), interleave<0>(c, d, word_lanes));
  store_half(interleave<size / 2>(a, b, word_lanes), interleave<size / 2>(c, d, word_lanes));
}

}  // namespace qkv::kernels
