#pragma once

#include <string>
#include <vector>

#include "cli/commands/fit_data.h"
#include "cli/commands/ranking.h"

/// The result of `qkv fit`, for people and programs.
namespace qkv::commands {

/// A search that is over, and the model that was trained in the end.
struct FitResult {
  std::string run;  ///< folder of the model
  std::string metric;
  SearchPlan plan;
  std::vector<CandidateResult> candidates;  ///< the winner first
  std::optional<VariantRun> model;          ///< the winner, trained on all examples
};

/// {"run", "metric", "winner", "members", "expected", "folds", "repeats", "halves", "fraction",
/// "seeds", "candidates"} and, with test data, "test".
Json to_json(const FitResult& result);
/// A row for each candidate.
Cells candidate_table(const FitResult& result);
/// "7 candidates are compared on 5 folds"
std::string search_described(const SearchPlan& plan);
/// "accuracy 0.7780; on new examples between 0.7512 and 0.8048 (95 %)"
std::string expectation(const FitResult& result);
/// The card of a model (Mitchell et al. 2019, "Model Cards for Model Reporting") as Markdown: data,
/// method, score, labels, examples and limits.
std::string card_of(const FitResult& result, const FitData& data);

}  // namespace qkv::commands
