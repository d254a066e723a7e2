#include "train/tasks/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/packed_weights.h"
#include "datasets/vocabulary.h"

namespace qkv {

namespace {

/// The ids from `reserved` on by falling logit, equal ones by id: the first `count`, or all where
/// it is 0.
std::vector<std::size_t> ranked(std::span<const double> logits, std::size_t reserved, Index count) {
  std::vector<std::size_t> tokens(logits.size() - reserved);
  std::iota(tokens.begin(), tokens.end(), reserved);
  if (count > 0 && count < std::ssize(tokens)) {
    // To sort all of a large vocabulary can take longer than the model.
    std::ranges::partial_sort(tokens, tokens.begin() + count, [&](auto a, auto b) {
      return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
    });
    tokens.resize(static_cast<std::size_t>(count));
  } else {
    std::ranges::stable_sort(tokens, std::ranges::greater(), [&](auto t) { return logits[t]; });
  }
  return tokens;
}

}  // namespace

std::int32_t sample(std::span<const double> logits, const Sampling& sampling, std::uint64_t index) {
  const auto reserved = static_cast<std::size_t>(sampling.reserved);
  require<ValueError>(logits.size() > reserved, "[sample] there is no token to draw");
  const bool greedy = sampling.temperature == 0;
  const std::vector<std::size_t> tokens = ranked(logits, reserved, greedy ? 1 : sampling.top_k);
  if (greedy) return static_cast<std::int32_t>(tokens.front());

  std::vector<double> weights(tokens.size());
  const double largest = logits[tokens.front()];
  std::ranges::transform(tokens, weights.begin(), [&](std::size_t t) {
    return std::exp((logits[t] - largest) / sampling.temperature);
  });
  const double limit = sampling.top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
  std::size_t kept = 0;
  double total = 0;
  while (kept < weights.size() && (kept == 0 || total < limit)) total += weights[kept++];

  double left = total * Random(sampling.seed, Purpose::sampling).uniform(index);
  std::size_t chosen = 0;
  while (chosen + 1 < kept && left >= weights[chosen]) left -= weights[chosen++];
  return static_cast<std::int32_t>(tokens[chosen]);
}

std::vector<std::int32_t> end_of_text_tokens(const Vocabulary& vocabulary) {
  std::vector<std::int32_t> ends;
  for (const std::string space : {"", " "})
    for (const std::string_view token : {"<|endoftext|>", "<eos>", "</s>"})
      if (const auto id = vocabulary.find(space + std::string(token))) ends.push_back(*id);
  return ends;
}

void generate_batch(const Network& network, std::vector<std::vector<std::int32_t>> prompts,
                    Index count, Index window, const Sampling& sampling,
                    const std::function<void(std::size_t, std::int32_t)>& pass_on,
                    const Hook* hook) {
  require<ValueError>(
      std::ranges::all_of(prompts, [&](const auto& p) { return p.size() == prompts[0].size(); }),
      "[generate] the prompts of a batch differ in length; group them by it");
  require<ValueError>(prompts.empty() || !prompts[0].empty(),
                      "[generate] the prompt is empty; give at least one token");
  const NoGrad no_grad;
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  PackedWeights weights(WeightFormat::float32);
  PackedWeights* const callers = Execution::current().packed;
  const PackedWeights::Use packed(callers ? *callers : weights);
  std::vector<std::vector<std::int32_t>> texts = std::move(prompts);
  std::vector<bool> ended(texts.size());
  KeyValueCache cache;
  for (Index i = 0; i < count && std::ranges::count(ended, false) > 0; ++i) {
    if (cache.length() == window) cache = {};
    // A full cache restarts from the second half of its window, so that most steps read one token.
    const Index known = std::ssize(texts[0]);
    const Index unread = cache.length() ? 1 : known <= window ? known : (window + 1) / 2;
    std::vector<std::int32_t> next;
    for (const auto& text : texts) next.insert(next.end(), text.end() - unread, text.end());
    Context context({.cache = &cache, .hook = hook});
    const Tensor x = (*network.model)(Indices(next, {std::ssize(texts), unread}), {}, context);
    const std::vector<double> logits = network.logits(slice(x, 1, unread - 1, unread)).values();
    const std::size_t classes = logits.size() / texts.size();
    for (std::size_t t = 0; t < texts.size(); ++t) {
      texts[t].push_back(sample(std::span(logits).subspan(t * classes, classes), sampling,
                                static_cast<std::uint64_t>(i)));
      ended[t] =
          ended[t] || std::ranges::find(sampling.ends, texts[t].back()) != sampling.ends.end();
      if (!ended[t]) pass_on(t, texts[t].back());
    }
  }
}

void generate(const Network& network, std::vector<std::int32_t> prompt, Index count, Index window,
              const Sampling& sampling, const std::function<void(std::int32_t)>& pass_on,
              const Hook* hook) {
  generate_batch(
      network, {std::move(prompt)}, count, window, sampling,
      [&](std::size_t, std::int32_t token) { pass_on(token); }, hook);
}

}  // namespace qkv
