#include "train/loop/step_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "train/ranks/gradient_sum.h"

namespace qkv {
namespace {

/// A model of more parameters is large.
constexpr Index large_model = Index{1} << 22;
constexpr Index shard_tokens = 1024, max_shards = 1024;
constexpr double shard_operations = 2.5e8;
/// A batch of more operations is divided into chunks of about so many tokens. In one of fewer than
/// the last, ops are too short to be shared by threads.
constexpr Index chunk_tokens = 256;
constexpr double large_batch = 1e10, short_batch = 1e9;

/// Forward takes about 2 operations a token and parameter, backward twice as many.
double operations_of(Index parameters, Index tokens) {
  return 6 * static_cast<double>(tokens) * static_cast<double>(parameters);
}

}  // namespace

Index shard_count(Index parameters, Index examples, Index tokens) {
  const double paying = std::min(static_cast<double>(tokens) / static_cast<double>(shard_tokens),
                                 operations_of(parameters, tokens) / shard_operations);
  const Index least = parameters > large_model ? 1 : 2, most = std::min(max_shards, examples);
  const auto count = static_cast<Index>(std::min(paying, static_cast<double>(most)));
  return static_cast<Index>(
      std::bit_floor(static_cast<std::size_t>(std::min(std::max(count, least), most))));
}

StepPlanner::StepPlanner(const Training& training, const Communicator& ranks)
    : options_(training.options().train),
      ranks_(ranks),
      parameters_(parameter_count(training.module())),
      memory_(training.memory()) {}

StepPlan StepPlanner::plan(Index tokens) const {
  const Index batch = options_.batch, batch_tokens = tokens / options_.accumulate;
  const double operations = operations_of(parameters_, batch_tokens);
  const Index shards = shard_count(parameters_, batch, batch_tokens);
  const Index chunks =
      operations < large_batch
          ? 1
          : std::clamp<Index>(batch_tokens / (shards * chunk_tokens), 1, batch / shards);
  const Chunks by_rank{shards, ranks_.size()};
  const Index first = by_rank.begin(ranks_.rank()), own = by_rank.end(ranks_.rank()) - first;
  StepPlan plan{.tokens = tokens,
                .chunks = {batch, shards * chunks},
                .shards = {shards * chunks, shards},
                .first_shard = first,
                .own_shards = own,
                .lanes = 1,
                .threads_per_lane = 1,
                .recomputes = false};
  if (parameters_ <= large_model) use_threads(plan, operations);
  if (fits(plan)) return plan;
  plan.lanes = 1;
  plan.recomputes = !fits(plan);
  return plan;
}

/// Lanes of as many threads each: of one where there are enough shards, or ops are short.
void StepPlanner::use_threads(StepPlan& plan, double operations) const {
  const Index shards = std::max<Index>(plan.own_shards, 1);
  const bool share_ops = threads() > shards && operations >= short_batch;
  plan.lanes = share_ops ? std::gcd(shards, Index{threads()}) : std::min<Index>(shards, threads());
  plan.threads_per_lane = share_ops ? threads() / plan.lanes : 1;
}

/// Whether the estimated bytes of a step are within the budget.
bool StepPlanner::fits(const StepPlan& plan) const {
  if (!memory_) return true;
  const Index shards = std::max<Index>(plan.own_shards / plan.lanes, 1);
  const auto gradients = static_cast<double>(std::bit_width(static_cast<std::size_t>(shards)));
  const Index batch_tokens = plan.tokens / options_.accumulate;
  const double tokens = static_cast<double>(batch_tokens) / static_cast<double>(plan.chunks.count);
  const double activations = memory_->activations(tokens, plan.recomputes);
  const double bytes = memory_->state + static_cast<double>(plan.lanes) *
                                            (gradients * memory_->gradients + activations);
  return bytes <= memory_->budget;
}

}  // namespace qkv
