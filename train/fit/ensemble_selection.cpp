#include "train/fit/ensemble_selection.h"

#include <algorithm>
#include <optional>

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
  SelectedEnsemble ensemble = ensemble_of(candidates, {0});
  for (auto larger = enlarged(candidates, ensemble, metric);
       larger && score_of(*larger, metric) > score_of(ensemble, metric);
       larger = enlarged(candidates, ensemble, metric))
    ensemble = std::move(*larger);
  return ensemble;
}

}  // namespace qkv
