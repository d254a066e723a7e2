#include "cli/commands/compare_results.h"

#include <algorithm>

#include "train/fit/search_plan.h"

namespace qkv::commands {
namespace {

const std::optional<Evaluation>& measured(const VariantRun& run, Split split) {
  return split == Split::test ? run.outcome.test : run.valid;
}

Split split_of(const std::vector<VariantResult>& results) {
  const auto has = [&](Split split) {
    return std::ranges::any_of(results, [&](const VariantResult& result) {
      return measured(result.runs.front(), split).has_value();
    });
  };
  return !has(Split::test) && has(Split::valid) ? Split::valid : Split::test;
}

/// Adds the mean and the sample standard deviation of the loss and of each metric over the runs.
void add_statistics(Json& variant, const VariantResult& result, Split split) {
  Json all = Json::object();
  for (const VariantRun& run : result.runs) {
    const auto& found = measured(run, split);
    if (!found) continue;
    all["loss"].push_back(found->loss);
    for (const auto& [name, value] : found->metrics) all[name].push_back(value);
  }
  for (const auto& [name, list] : all.items()) {
    const auto values = list.get<std::vector<double>>();
    variant["mean"][name] = mean_of(values);
    variant["std"][name] = sample_std(values);
  }
}

/// Metrics that a table shows: the headline metric, the loss, then the others. The log loss of an
/// evaluation is its loss.
std::vector<std::string> shown_metrics(const Json& mean) {
  std::vector<std::string> names;
  for (const auto& [name, value] : mean.items())
    if (name != "log_loss") names.push_back(name);
  if (names.size() > 1) std::swap(names[0], names[1]);
  return names;
}

std::string_view runs_are(const VariantResult& result) {
  return result.runs.front().fold > 0 ? "folds" : "seeds";
}

void add_run(Json& json, const VariantRun& run, Split split) {
  if (const auto& found = measured(run, split))
    json[std::string(to_string(split))] = qkv::to_json(*found);
  json["probes"] = commands::to_json(run.probes);
}

/// A row for each claim of a probe, with the number of runs in which it is as expected.
void add_claims(Cells& rows, const VariantResult& result, std::size_t probe) {
  const Probe& claim = result.runs.front().probes[probe].result.probe;
  const auto in_runs = [&](auto right) {
    std::size_t count = 0, all = 0;
    for (const VariantRun& run : result.runs)
      for (const auto& [variant, found] : run.probes)
        if (found.probe == claim) {
          ++all;
          count += right(found) ? 1 : 0;
        }
    return fmt::format("{} of {} {}", count, all, runs_are(result));
  };
  rows.push_back({result.name, claim.name, "training", claim.expect,
                  in_runs([](const ProbeResult& found) { return found.trained.holds; })});
  for (std::size_t i = 0; i < claim.broken_by.size(); ++i)
    rows.push_back({result.name, claim.name, claim.broken_by[i], "not " + claim.expect,
                    in_runs([&](const ProbeResult& found) { return !found.broken[i].holds; })});
}

}  // namespace

std::vector<VariantResult> results_of(const std::vector<SweepRun>& jobs,
                                      const std::vector<std::optional<VariantRun>>& done) {
  std::vector<VariantResult> results;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (results.empty() || results.back().name != jobs[i].variant)
      results.push_back({jobs[i].variant, {}});
    results.back().runs.push_back(*done[i]);
  }
  return results;
}

Json to_json(const std::vector<VariantResult>& results) {
  const Split split = split_of(results);
  Json variants = Json::array();
  for (const VariantResult& result : results) {
    double seconds = 0;
    for (const VariantRun& run : result.runs) seconds += run.outcome.seconds;
    Json& variant = variants.emplace_back(object({{"name", result.name},
                                                  {"parameters", result.runs.front().parameters},
                                                  {"seconds", seconds}}));
    add_run(variant, result.runs.front(), split);
    for (const VariantRun& run : result.runs) {
      Json json = object({{"seed", run.seed}, {"seconds", run.outcome.seconds}});
      if (run.fold > 0) json["fold"] = run.fold;
      add_run(json, run, split);
      variant[std::string(runs_are(result))].push_back(json);
    }
    add_statistics(variant, result, split);
  }
  return object({{"variants", variants}, {"split", std::string(to_string(split))}});
}

Cells to_table(const Json& results) {
  std::vector<Column> columns = {
      {"variant", "/name"}, {"parameters", "/parameters"}, {"seconds", "/seconds", "{:.1f}"}};
  const auto add_column = [&](const std::string& metric) {
    const std::string pointer = "/mean/" + metric;
    if (std::ranges::find(columns, pointer, &Column::pointer) == columns.end())
      columns.push_back({results["split"].get<std::string>() + " " + metric, pointer});
  };
  Json variants = results["variants"];
  for (Json& variant : variants) {
    if (!variant.contains("mean")) continue;
    const bool several = variant[variant.contains("folds") ? "folds" : "seeds"].size() > 1;
    for (const std::string& metric : shown_metrics(variant["mean"])) {
      add_column(metric);
      Json& mean = variant["mean"][metric];
      if (several)
        mean = fmt::format("{:.4f} ± {:.4f}", mean.get<double>(),
                           variant["std"][metric].get<double>());
    }
  }
  add_column("loss");
  return table_of(variants, columns);
}

Cells probe_table(const std::vector<VariantResult>& results) {
  const auto probes = probes_of(results);
  if (probes.empty()) return {};
  if (results.front().runs.size() == 1) return commands::to_table(probes);
  Cells rows = {{"variant", "probe", "after", "expected", "found"}};
  for (const VariantResult& result : results)
    for (std::size_t i = 0; i < result.runs.front().probes.size(); ++i) add_claims(rows, result, i);
  return rows;
}

std::vector<VariantProbe> probes_of(const std::vector<VariantResult>& results) {
  std::vector<VariantProbe> probes;
  for (const VariantResult& result : results)
    for (const VariantRun& run : result.runs)
      probes.insert(probes.end(), run.probes.begin(), run.probes.end());
  return probes;
}

}  // namespace qkv::commands
