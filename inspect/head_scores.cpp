#include "inspect/head_scores.h"

#include <algorithm>

namespace qkv {
namespace {

using Ids = std::span<const std::int32_t>;

struct PatternRow {
  std::string_view name;
  bool (*matches)(Ids ids, std::size_t query, std::size_t key);
};

constexpr auto patterns = std::to_array<PatternRow>({
    {"previous token", [](Ids, std::size_t query, std::size_t key) { return key + 1 == query; }},
    {"next token", [](Ids, std::size_t query, std::size_t key) { return key == query + 1; }},
    {"first token", [](Ids, std::size_t query, std::size_t key) { return key == 0 && query > 0; }},
    {"same token", [](Ids ids, std::size_t query,
                      std::size_t key) { return key != query && ids[key] == ids[query]; }},
    {"induction",
     [](Ids ids, std::size_t query, std::size_t key) {
       return key > 0 && key <= query && ids[key - 1] == ids[query];
     }},
});

}  // namespace

void HeadScores::add(const Tensor& weights, const Tensor& mask, Ids ids) {
  const auto w = weights.values(), visible = mask.values();
  const std::size_t time = ids.size();
  for (std::size_t i = 0; i < patterns.size(); ++i)
    for (std::size_t query = 0; query < time; ++query) {
      double sum = 0;
      bool found = false;
      for (std::size_t key = 0; key < time; ++key) {
        if (visible[query * time + key] == 0 || !patterns[i].matches(ids, query, key)) continue;
        sum += w[query * time + key];
        found = true;
      }
      if (!found) continue;
      means_[i].sum += sum;
      ++means_[i].queries;
    }
}

std::vector<PatternScore> HeadScores::scores() const {
  std::vector<PatternScore> result;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const auto& [sum, queries] = means_[i];
    result.push_back({patterns[i].name, queries > 0 ? std::optional(sum / queries) : std::nullopt});
  }
  return result;
}

std::optional<std::string_view> HeadScores::name() const {
  const auto all = scores();
  const auto best = std::ranges::max_element(all, {}, &PatternScore::score);
  return best->score > 0.5 ? std::optional(best->pattern) : std::nullopt;
}

}  // namespace qkv
