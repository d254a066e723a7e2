#include "train/fit/search_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/error.h"
#include "train/storage/strict_json.h"

namespace qkv {
namespace {

struct Thoroughness {
  Index folds;
  bool halves;
};
/// Ways to search, the most thorough first.
constexpr auto thorough = std::to_array<Thoroughness>({{most_planned_folds, false}, {5, false}});
constexpr auto quick = std::to_array<Thoroughness>({{5, true}, {3, true}, {2, true}});

/// The fraction of a training's steps that fits into `seconds`; reading takes its time all the
/// same.
double fitting_fraction(const SearchPlan& plan, std::span<const CandidateTime> times, int threads,
                        double seconds) {
  SearchPlan reading = plan;
  reading.fraction = 0;
  const double least = search_seconds(reading, times, threads);
  const double all = search_seconds(plan, times, threads);
  constexpr double smallest = 1e-3;
  return std::clamp((seconds - least) / (all - least), smallest, 1.0);
}

/// Whether the names are some of the candidates', each once.
bool are_candidates(const std::vector<std::string>& names, const std::vector<Variant>& candidates) {
  const std::set<std::string> distinct(names.begin(), names.end());
  return !names.empty() && distinct.size() == names.size() &&
         std::ranges::all_of(names, [&](const std::string& name) {
           return std::ranges::find(candidates, name, &Variant::name) != candidates.end();
         });
}

/// Half of the interval of `expected_score`.
double half_interval(Index folds, double score_std) {
  // The quantile .975 for 2 to 10 folds.
  constexpr std::array quantiles = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};
  require<ValueError>(folds >= 2 && folds < std::ssize(quantiles) + 2,
                      "expected_score takes the scores of 2 to 10 folds, got {}", folds);
  return quantiles[static_cast<std::size_t>(folds - 2)] * score_std *
         std::sqrt(1 + 1 / static_cast<double>(folds));
}

}  // namespace

std::string to_json(const StoredSearch& search) {
  nlohmann::ordered_json json;
  json["command"] = search.command;
  json["metric"] = search.metric;
  json["candidates"] = search.plan.candidates;
  json["folds"] = search.plan.folds;
  json["repeats"] = search.plan.repeats;
  json["halves"] = search.plan.halves;
  json["fraction"] = search.plan.fraction;
  json["seeds"] = search.plan.seeds;
  constexpr int indent = 1;
  return json.dump(indent) + "\n";
}

StoredSearch parse_search(std::string_view text, const std::vector<Variant>& candidates) try {
  constexpr int deepest = 2;
  const auto json = strict_json(text, deepest);
  const SearchPlan plan{json.at("candidates"), json.at("folds"),    json.at("repeats"),
                        json.at("halves"),     json.at("fraction"), json.at("seeds")};
  require<FileError>(are_candidates(plan.candidates, candidates), "it has other candidates");
  require<FileError>(plan.folds >= 2 && plan.folds <= most_planned_folds,
                     "it has {} folds instead of 2 to {}", plan.folds, most_planned_folds);
  require<FileError>(plan.repeats >= 1 && plan.repeats <= most_planned_repeats,
                     "it has {} repeats instead of 1 to {}", plan.repeats, most_planned_repeats);
  require<FileError>(plan.fraction > 0 && plan.fraction <= 1,
                     "it has a fraction of {} instead of one in (0, 1]", plan.fraction);
  require<FileError>(plan.seeds >= 1 && plan.seeds <= most_planned_seeds,
                     "it has {} seeds instead of 1 to {}", plan.seeds, most_planned_seeds);
  return {json.at("command"), json.at("metric"), plan};
} catch (const nlohmann::json::exception& error) {
  throw FileError(error.what());
}

std::vector<SearchRound> rounds_of(const SearchPlan& plan) {
  std::size_t left = plan.candidates.size();
  std::vector<SearchRound> rounds;
  for (Index fold = 1; fold <= plan.folds; ++fold) {
    if (!rounds.empty() && rounds.back().candidates == left)
      rounds.back().last_fold = fold;
    else
      rounds.push_back({fold, fold, left});
    if (plan.halves && left > 2) left = std::max<std::size_t>(2, (left + 1) / 2);
  }
  return rounds;
}

double search_seconds(const SearchPlan& plan, std::span<const CandidateTime> times, int threads) {
  std::vector<double> costs;
  double reading = 0;
  for (const std::string& name : plan.candidates) {
    const CandidateTime& time = *std::ranges::find(times, name, &CandidateTime::name);
    reading = std::max(reading, time.reading);
    costs.push_back(2 * time.reading + plan.fraction * time.training);  // evaluated again
  }
  std::ranges::sort(costs, std::greater());
  const auto rounds = rounds_of(plan);
  const auto last = costs.begin() + static_cast<std::ptrdiff_t>(rounds.back().candidates);
  const double models = static_cast<double>(plan.seeds) * std::accumulate(costs.begin(), last, 0.0);
  double seconds = std::max(models / threads, costs.front());
  seconds += static_cast<double>(plan.folds + 1) * reading;  // examples of the folds are shown
  for (const SearchRound& round : rounds) {
    const auto folds = static_cast<double>(plan.repeats * (round.last_fold - round.first_fold + 1));
    const auto slowest = costs.begin() + static_cast<std::ptrdiff_t>(round.candidates);
    const double sum = folds * std::accumulate(costs.begin(), slowest, 0.0);
    seconds += std::max(sum / threads, costs.front());
  }
  return seconds;
}

SearchPlan search_plan(std::vector<CandidateTime> times, int threads, double seconds,
                       Index most_folds, Index most_seeds) {
  std::ranges::stable_sort(times, std::greater(),
                           [](const CandidateTime& time) { return time.reading + time.training; });
  SearchPlan plan;
  const auto fits = [&](Thoroughness way) {
    plan.folds = std::min(way.folds, most_folds);
    plan.halves = way.halves;
    return search_seconds(plan, times, threads) <= seconds;
  };
  const auto is_planned = [&](std::span<const Thoroughness> ways, std::size_t fewest) {
    plan.candidates.clear();
    for (const CandidateTime& time : times) plan.candidates.push_back(time.name);
    while (!std::ranges::any_of(ways, fits)) {
      if (plan.candidates.size() == fewest) return false;
      plan.candidates.erase(plan.candidates.begin());
    }
    return true;
  };
  if (!is_planned(thorough, std::max<std::size_t>(times.size() / 2, 1)) && !is_planned(quick, 1))
    plan.fraction = fitting_fraction(plan, times, threads, seconds);
  const auto raise = [&](Index SearchPlan::*number, Index most) {
    SearchPlan more = plan;
    while ((more.*number)++ < most && search_seconds(more, times, threads) <= seconds) plan = more;
  };
  raise(&SearchPlan::seeds, most_seeds);
  if (plan.folds == std::min(most_planned_folds, most_folds))
    raise(&SearchPlan::repeats, most_planned_repeats);
  return plan;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double sample_std(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

ExpectedScore expected_score(std::span<const double> scores, Index folds) {
  const double mean = mean_of(scores);
  const double half = half_interval(folds, sample_std(scores));
  return {mean, mean - half, mean + half};
}

ExpectedScore expected_fraction(std::span<const double> scores, Index folds, Index examples) {
  const double mean = mean_of(scores);
  const auto count = static_cast<double>(examples);
  const double p = (mean * count + 1) / (count + 2);
  const double chance = std::sqrt(p * (1 - p) * static_cast<double>(folds) / count);
  const double half = half_interval(folds, std::max(sample_std(scores), chance));
  return {mean, std::max(mean - half, 0.0), std::min(mean + half, 1.0)};
}

}  // namespace qkv
