#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/cpp_model/tokens.h"

namespace qkv_model {

/// How the next token is drawn, as the options of `qkv generate`.
struct Sampling {
  double temperature = 1;  ///< divides the logits; 0: the most probable token
  std::size_t top_k = 0;   ///< only the k most probable tokens; 0: all
  double top_p = 1;        ///< only the most probable tokens with this probability together
  std::uint64_t seed = 1;
};

/// Value `index` of a seed's random numbers in [0, 1), by Philox4x32-10 (Salmon et al. 2011).
inline double uniform(std::uint64_t seed, std::uint64_t index) {
  constexpr std::uint32_t purpose = 3U << 24;  // of drawing tokens
  constexpr std::uint64_t mask = 0xFFFFFFFF;
  const std::uint64_t block = index / 4;
  std::array<std::uint64_t, 4> x = {block & mask, 0, block >> 32 << 14, purpose};
  std::uint64_t key_0 = seed & mask, key_1 = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53U * x[0], b = 0xCD9E8D57U * x[2];
    x = {(b >> 32) ^ x[1] ^ key_0, b & mask, (a >> 32) ^ x[3] ^ key_1, a & mask};
    key_0 = (key_0 + 0x9E3779B9U) & mask;
    key_1 = (key_1 + 0xBB67AE85U) & mask;
  }
  return static_cast<double>(x[index % 4]) / 4294967296.0;
}

/// Token `index` of a text.
inline int drawn(const Vector& logits, const Sampling& sampling, std::uint64_t index) {
  Ids tokens(logits.size() - description().reserved);
  std::iota(tokens.begin(), tokens.end(), static_cast<int>(description().reserved));
  const auto logit = [&](int token) { return logits[static_cast<std::size_t>(token)]; };
  std::sort(tokens.begin(), tokens.end(),
            [&](int a, int b) { return logit(a) > logit(b) || (logit(a) == logit(b) && a < b); });
  if (sampling.temperature <= 0) return tokens.front();
  if (sampling.top_k > 0) tokens.resize(std::min(tokens.size(), sampling.top_k));
  Vector weights;
  for (const int token : tokens)
    weights.push_back(std::exp((logit(token) - logit(tokens.front())) / sampling.temperature));
  const double limit = sampling.top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
  std::size_t kept = 0;
  double total = 0;
  while (kept < weights.size() && (kept == 0 || total < limit)) total += weights[kept++];
  double left = total * uniform(sampling.seed, index);
  std::size_t chosen = 0;
  while (chosen + 1 < kept && left >= weights[chosen]) left -= weights[chosen++];
  return tokens[chosen];
}

/// Whether a token ends the text.
inline bool ends_text(int token) {
  std::string_view text = token_of(token);
  if (text.substr(0, 1) == " ") text.remove_prefix(1);
  return text == "<|endoftext|>" || text == "<eos>" || text == "</s>";
}

/// The text with which the model continues a prompt, by at most `count` tokens.
template <class Tokenizer, class Model>
std::string continuation_of(std::string_view prompt, std::size_t count, const Sampling& sampling) {
  require_utf8(prompt);
  Ids text;
  for_each_piece<Tokenizer>(Tokenizer::prepared(prompt),
                            [&](std::string_view piece) { Tokenizer::encode(piece, text); });
  if (text.empty()) throw std::invalid_argument("the prompt has no token that the model reads");
  const std::size_t window = description().max_length;
  if (text.size() > window)
    text.erase(text.begin(), text.end() - static_cast<std::ptrdiff_t>(window));
  std::string_view last = prompt;
  while (last.size() > first_character(last).size())
    last.remove_prefix(first_character(last).size());
  // Between words a text has white space that is no token.
  const bool is_spaced = !Tokenizer::keeps_spaces && is_white(last);

  std::string written;
  typename Model::Cache cache;
  for (std::size_t i = 0; i < count; ++i) {
    if (cache.length == window) cache = {};
    // A full cache restarts from the second half of its window, so that most steps read one token.
    const std::size_t unread = cache.length > 0        ? 1
                               : text.size() <= window ? text.size()
                                                       : (window + 1) / 2;
    const Ids next(text.end() - static_cast<std::ptrdiff_t>(unread), text.end());
    const Matrix x = loaded<Model>()(next, cache);
    const int token = drawn(logits_of(x.one_row(unread - 1)).values, sampling, i);
    if (ends_text(token)) break;
    const std::string before = text_of<Tokenizer>({text.back()});
    std::string added = text_of<Tokenizer>({text.back(), token}).substr(before.size());
    if (is_spaced && written.empty() && added.substr(0, 1) == " ") added.erase(0, 1);
    written += added;
    text.push_back(token);
  }
  return written;
}

}  // namespace qkv_model
