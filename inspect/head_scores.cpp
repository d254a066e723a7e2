#include "inspect/head_scores.h"

#include "core/kinds.h"

namespace qkv {
namespace {

using Ids = std::span<const std::int32_t>;

struct PatternRow {
  HeadPattern value;
  std::string_view name;
  bool (*matches)(Ids ids, std::size_t query, std::size_t key);
};

constexpr auto patterns = std::to_array<PatternRow>({
    {HeadPattern::previous_token, "previous token",
     [](Ids, std::size_t query, std::size_t key) { return key + 1 == query; }},
    {HeadPattern::next_token, "next token",
     [](Ids, std::size_t query, std::size_t key) { return key == query + 1; }},
    {HeadPattern::first_token, "first token",
     [](Ids, std::size_t query, std::size_t key) { return key == 0 && query > 0; }},
    {HeadPattern::same_token, "same token",
     [](Ids ids, std::size_t query, std::size_t key) {
       return key != query && ids[key] == ids[query];
     }},
    {HeadPattern::induction, "induction",
     [](Ids ids, std::size_t query, std::size_t key) {
       return key > 0 && key <= query && ids[key - 1] == ids[query];
     }},
});
static_assert(lists_every_kind(patterns));

}  // namespace

std::string_view to_string(HeadPattern pattern) {
  return row_of(patterns, pattern).name;
}

void HeadScores::add(const Tensor& weights, const Tensor& mask, Ids ids) {
  const auto w = weights.values(), visible = mask.values();
  const std::size_t time = ids.size();
  for (const PatternRow& pattern : patterns)
    for (std::size_t query = 0; query < time; ++query) {
      double sum = 0;
      bool found = false;
      for (std::size_t key = 0; key < time; ++key) {
        if (visible[query * time + key] == 0 || !pattern.matches(ids, query, key)) continue;
        sum += w[query * time + key];
        found = true;
      }
      if (!found) continue;
      Mean& mean = means_[static_cast<std::size_t>(pattern.value)];
      mean.sum += sum;
      ++mean.queries;
    }
}

std::optional<double> HeadScores::score(HeadPattern pattern) const {
  const Mean& mean = means_[static_cast<std::size_t>(pattern)];
  if (mean.queries == 0) return std::nullopt;
  return mean.sum / mean.queries;
}

std::optional<HeadPattern> HeadScores::name() const {
  std::optional<HeadPattern> best;
  double highest = 0.5;
  for (const PatternRow& pattern : patterns)
    if (const auto found = score(pattern.value); found && *found > highest) {
      best = pattern.value;
      highest = *found;
    }
  return best;
}

}  // namespace qkv
