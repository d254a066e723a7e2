#include "cli/commands/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace qkv::commands {

const Evaluation& evaluation_of(const VariantRun& run) {
  return (run.fold > 0 ? run.outcome.test : run.valid).value();
}

std::string name_of(const VariantRun& run) {
  return fmt::format("seed {}{}", run.seed, run.fold > 0 ? fmt::format(", fold {}", run.fold) : "");
}

double value_of(const Evaluation& evaluation, const std::string& metric) {
  return metric == "loss" ? evaluation.loss : evaluation.metric(metric);
}

std::vector<double> CandidateResult::scores(const std::string& metric) const {
  std::vector<double> scores;
  for (const VariantRun& run : runs) scores.push_back(value_of(evaluation_of(run), metric));
  return scores;
}

double CandidateResult::rank(const std::string& metric) const {
  std::vector<double> ranks;
  for (const VariantRun& run : runs) ranks.push_back(evaluation_of(run).score_by(metric));
  return mean_of(ranks);
}

double CandidateResult::seconds() const {
  double seconds = 0;
  for (const VariantRun& run : runs) seconds += run.outcome.seconds;
  return seconds;
}

Ranking::Ranking(const std::vector<std::string>& names, std::string metric)
    : metric_(std::move(metric)) {
  for (const std::string& name : names) results_.push_back({name, {name}});
}

bool Ranking::is_left(const std::string& name) const {
  const auto end = results_.begin() + left_;
  return std::ranges::find(results_.begin(), end, name, &CandidateResult::name) != end;
}

void Ranking::add(const std::string& name, const VariantRun& run) {
  std::ranges::find(results_, name, &CandidateResult::name)->runs.push_back(run);
}

void Ranking::end_round() {
  for (CandidateResult& result : results_)
    std::ranges::sort(result.runs, {},
                      [](const VariantRun& run) { return std::pair(run.seed, run.fold); });
  std::ranges::stable_sort(results_.begin(), results_.begin() + left_, std::greater(),
                           [this](const CandidateResult& result) { return result.rank(metric_); });
}

const CandidateResult* Ranking::ahead() const {
  const CandidateResult* best = nullptr;
  for (auto result = results_.begin(); result != results_.begin() + left_; ++result)
    if (!result->runs.empty() && (!best || result->rank(metric_) > best->rank(metric_)))
      best = &*result;
  return best;
}

Json to_json(const std::vector<CandidateResult>& candidates, const std::string& metric) {
  Json all = Json::array();
  for (const CandidateResult& candidate : candidates) {
    const auto scores = candidate.scores(metric);
    all.push_back(object({{"name", candidate.name},
                          {"scores", scores},
                          {"mean", mean_of(scores)},
                          {"runs", scores.size()},
                          {"parameters", candidate.runs.front().parameters},
                          {"seconds", candidate.seconds()}}));
  }
  return all;
}

Cells candidate_table(const Json& candidates, const std::string& metric, const std::string& runs) {
  return table_of(candidates, {{"candidate", "/name"},
                               {"mean " + metric, "/mean"},
                               {runs, "/runs"},
                               {"parameters", "/parameters"},
                               {"seconds", "/seconds", "{:.1f}"}});
}

}  // namespace qkv::commands
