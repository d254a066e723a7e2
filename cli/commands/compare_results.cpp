#include "cli/commands/compare_results.h"

#include <algorithm>
#include <cmath>

namespace qkv::commands {
namespace {

struct Spread {
  double mean = 0, deviation = 0;
};

/// The mean and the sample standard deviation, 0 of a single value.
Spread spread_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  Spread spread;
  for (const double value : values) spread.mean += value / count;
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

const std::optional<Evaluation>& measured(const VariantRun& run, Split split) {
  return split == Split::test ? run.outcome.test : run.valid;
}

/// The split on which the results are measured.
Split split_of(const std::vector<VariantResult>& results) {
  const auto has = [&](Split split) {
    return std::ranges::any_of(results, [&](const VariantResult& result) {
      return measured(result.runs.front(), split).has_value();
    });
  };
  return !has(Split::test) && has(Split::valid) ? Split::valid : Split::test;
}

/// Losses of the runs; none without data.
std::vector<double> losses_of(const VariantResult& result, Split split) {
  std::vector<double> losses;
  for (const VariantRun& run : result.runs)
    if (const auto& found = measured(run, split)) losses.push_back(found->loss);
  return losses;
}

/// The values of a metric; none where it does not belong to the task.
std::vector<double> values_of(const VariantResult& result, Split split, const std::string& metric) {
  std::vector<double> values;
  for (const VariantRun& run : result.runs) {
    const auto& found = measured(run, split);
    if (const auto value = found ? found->find(metric) : std::nullopt) values.push_back(*value);
  }
  return values;
}

double seconds_of(const VariantResult& result) {
  double seconds = 0;
  for (const VariantRun& run : result.runs) seconds += run.outcome.seconds;
  return seconds;
}

/// The metrics of any of the variants, in order.
std::vector<std::string> metrics_of(const std::vector<VariantResult>& results, Split split) {
  std::vector<std::string> names;
  for (const VariantResult& result : results) {
    const auto& found = measured(result.runs.front(), split);
    if (!found) continue;
    for (const auto& [name, value] : found->metrics)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

/// What the runs differ in.
std::string_view runs_are(const VariantResult& result) {
  return result.runs.front().fold > 0 ? "folds" : "seeds";
}

Json to_json(const VariantRun& run, Split split) {
  Json json = {{"seed", run.seed}, {"seconds", run.outcome.seconds}};
  if (run.fold > 0) json["fold"] = run.fold;
  if (const auto& found = measured(run, split))
    json[std::string(to_string(split))] = commands::to_json(*found);
  json["probes"] = commands::to_json(run.probes);
  return json;
}

/// A row for each claim of a probe, with the number of runs in which it is as expected.
void add_claims(Rows& rows, const VariantResult& result, std::size_t probe) {
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

Json to_json(const std::vector<VariantResult>& results) {
  const Split split = split_of(results);
  const auto metrics = metrics_of(results, split);
  Json variants = Json::array();
  for (const VariantResult& result : results) {
    const VariantRun& first = result.runs.front();
    Json variant = {
        {"name", result.name}, {"parameters", result.parameters}, {"seconds", seconds_of(result)}};
    if (const auto& found = measured(first, split))
      variant[std::string(to_string(split))] = commands::to_json(*found);
    variant["probes"] = commands::to_json(first.probes);
    for (const VariantRun& run : result.runs)
      variant[runs_are(result)].push_back(to_json(run, split));
    const auto add = [&](const std::string& name, const std::vector<double>& values) {
      if (values.empty()) return;
      const Spread spread = spread_of(values);
      variant["mean"][name] = spread.mean;
      variant["std"][name] = spread.deviation;
    };
    add("loss", losses_of(result, split));
    for (const std::string& metric : metrics) add(metric, values_of(result, split, metric));
    variants.push_back(variant);
  }
  return {{"variants", variants}, {"split", std::string(to_string(split))}};
}

Rows to_table(const Json& results) {
  const auto split = results["split"].get<std::string>();
  std::vector<std::string> metrics = {"loss"};
  for (const Json& variant : results["variants"]) {
    const Json mean = variant.value("mean", Json::object());
    for (const auto& [metric, value] : mean.items())
      if (std::ranges::find(metrics, metric) == metrics.end()) metrics.push_back(metric);
  }
  Rows rows = {{"variant", "parameters", "seconds"}};
  for (const std::string& metric : metrics)
    rows.front().push_back(fmt::format("{} {}", split, metric));
  for (const Json& variant : results["variants"]) {
    rows.push_back({variant["name"].get<std::string>(), variant["parameters"].dump(),
                    fmt::format("{:.1f}", variant["seconds"].get<double>())});
    const Json mean = variant.value("mean", Json::object());
    const bool several = variant[variant.contains("folds") ? "folds" : "seeds"].size() > 1;
    for (const std::string& metric : metrics) {
      std::string cell = "-";
      if (mean.contains(metric)) cell = fmt::format("{:.4f}", mean[metric].get<double>());
      if (mean.contains(metric) && several)
        cell += fmt::format(" ± {:.4f}", variant["std"][metric].get<double>());
      rows.back().push_back(cell);
    }
  }
  return rows;
}

Rows probe_table(const std::vector<VariantResult>& results) {
  const auto probes = probes_of(results);
  if (probes.empty()) return {};
  if (results.front().runs.size() == 1) return commands::to_table(probes);
  Rows rows = {{"variant", "probe", "after", "expected", "found"}};
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
