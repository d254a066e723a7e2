#include "train/fit/ensemble_selection.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "train/fit/search_plan.h"
#include "train/tasks/ensemble.h"

namespace qkv {
namespace {

using Candidates = std::span<const std::vector<Evaluation>>;

SelectedEnsemble ensemble_of(Candidates candidates, std::vector<std::size_t> members) {
  SelectedEnsemble ensemble{std::move(members), {}};
  for (std::size_t fold = 0; fold < candidates.front().size(); ++fold) {
    std::vector<Evaluation> of_members;
    for (const std::size_t member : ensemble.members)
      of_members.push_back(candidates[member][fold]);
    ensemble.folds.push_back(averaged(of_members));
  }
  return ensemble;
}

double score_of(const SelectedEnsemble& ensemble, const std::string& metric) {
  double sum = 0;
  for (const Evaluation& fold : ensemble.folds) sum += fold.score_by(metric);
  return sum / static_cast<double>(ensemble.folds.size());
}

/// Whether `other` is better by no more than the standard error.
bool is_as_good(const SelectedEnsemble& ensemble, const SelectedEnsemble& other,
                const std::string& metric) {
  std::vector<double> differences;
  differences.reserve(ensemble.folds.size());
  for (std::size_t fold = 0; fold < ensemble.folds.size(); ++fold)
    differences.push_back(other.folds[fold].score_by(metric) -
                          ensemble.folds[fold].score_by(metric));
  const auto count = static_cast<double>(differences.size());
  return mean_of(differences) <= sample_std(differences) / std::sqrt(count);
}

/// The best ensemble with one member more; nothing when all are in it.
std::optional<SelectedEnsemble> enlarged(Candidates candidates, const SelectedEnsemble& ensemble,
                                         const std::string& metric) {
  std::optional<SelectedEnsemble> best;
  for (std::size_t added = 0; added < candidates.size(); ++added) {
    std::vector<std::size_t> members = ensemble.members;
    if (std::ranges::find(members, added) != members.end()) continue;
    members.push_back(added);
    SelectedEnsemble larger = ensemble_of(candidates, std::move(members));
    if (!best || score_of(larger, metric) > score_of(*best, metric)) best = std::move(larger);
  }
  return best;
}

}  // namespace

SelectedEnsemble selected_ensemble(Candidates candidates, const std::string& metric) {
  std::vector<SelectedEnsemble> ensembles = {ensemble_of(candidates, {0})};
  for (auto larger = enlarged(candidates, ensembles.back(), metric);
       larger && score_of(*larger, metric) > score_of(ensembles.back(), metric);
       larger = enlarged(candidates, ensembles.back(), metric))
    ensembles.push_back(std::move(*larger));
  return *std::ranges::find_if(ensembles, [&](const SelectedEnsemble& ensemble) {
    return is_as_good(ensemble, ensembles.back(), metric);
  });
}

}  // namespace qkv
