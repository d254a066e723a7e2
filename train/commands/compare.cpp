#include "train/commands/shared.h"
#include "train/storage/durable_file.h"
#include "train/terminal.h"
#include "train/trainer.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> only;
  std::vector<std::string> set;
  bool json = false;
};

struct Result {
  std::string name;
  Index parameters;
  Outcome outcome;
  std::vector<VariantProbe> probes;
};

std::vector<Variant> chosen(const ConfigFile& file, const std::vector<std::string>& only) {
  if (only.empty()) return file.variants;
  std::vector<Variant> variants;
  for (const std::string& name : only) {
    const auto found = std::ranges::find(file.variants, name, &Variant::name);
    std::string known;
    for (const Variant& variant : file.variants)
      known += (known.empty() ? "" : ", ") + variant.name;
    require<UserError>(found != file.variants.end(), "--only {}: no such variant; there are: {}",
                       name, known);
    variants.push_back(*found);
  }
  return variants;
}

/// "learned, 4 heads" -> "learned-4-heads"
std::string folder_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      result += c;
    else if (!result.empty() && result.back() != '-')
      result += '-';
  }
  return result;
}

Result trained(const Variant& variant, const std::filesystem::path& parent, StopSignal& stop) {
  const RunFolder folder(parent / folder_name(variant.name));
  Run run = start_run(variant.config);
  check_probes(run);
  folder.clear();
  folder.create();
  write_durably(folder.config(), to_toml(variant.config));
  const Outcome outcome = train(run, folder, stop);
  Result result{variant.name, parameter_count(*run.network), outcome, {}};
  if (!outcome.signal) result.probes = probed(folder, variant.name);
  return result;
}

Json to_json(const std::vector<Result>& results) {
  Json variants = Json::array();
  for (const Result& result : results) {
    Json variant = {{"name", result.name},
                    {"parameters", result.parameters},
                    {"seconds", result.outcome.seconds}};
    if (result.outcome.test) variant["test"] = commands::to_json(*result.outcome.test);
    variant["probes"] = commands::to_json(result.probes);
    variants.push_back(variant);
  }
  return {{"variants", variants}};
}

/// The metrics that any of the variants was measured by, in order.
std::vector<std::string> metrics_of(const std::vector<Result>& results) {
  std::vector<std::string> names;
  for (const Result& result : results) {
    if (!result.outcome.test) continue;
    for (const auto& [name, value] : result.outcome.test->metrics)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

/// A variant without test data has dashes for its results.
std::string to_table(const std::vector<Result>& results) {
  const std::vector<std::string> metrics = metrics_of(results);
  std::vector<std::vector<std::string>> rows = {{"variant", "parameters", "seconds", "test loss"}};
  for (const std::string& metric : metrics) rows.front().push_back("test " + metric);
  for (const auto& [name, parameters, outcome, probes] : results) {
    const auto& test = outcome.test;
    rows.push_back({name, fmt::format("{}", parameters), fmt::format("{:.1f}", outcome.seconds),
                    test ? fmt::format("{:.4f}", test->loss) : "-"});
    for (const std::string& metric : metrics) {
      const auto value = test ? test->find(metric) : std::nullopt;
      rows.back().push_back(value ? fmt::format("{:.4f}", *value) : "-");
    }
  }
  std::vector<VariantProbe> probes;
  for (const Result& result : results)
    probes.insert(probes.end(), result.probes.begin(), result.probes.end());
  return table(rows) + (probes.empty() ? "" : "\n" + commands::to_table(probes));
}

int run(const Options& options) {
  StopSignal stop;
  const ConfigFile file = read_config(options.config, options.set);
  require<UserError>(!file.variants.empty(), "{} has no [[variant]] to compare", options.config);
  const std::filesystem::path parent =
      std::filesystem::path("runs") / (file.base.name + "-compare");
  std::vector<Result> results;
  for (const Variant& variant : chosen(file, options.only)) {
    results.push_back(trained(variant, parent, stop));
    if (results.back().outcome.signal) return 128 + results.back().outcome.signal;
  }
  if (options.json)
    print(to_json(results));
  else
    fmt::print("{}", to_table(results));
  return 0;
}

}  // namespace

void add_compare(CommandLine& program) {
  add_command<Options>(
      program, "compare", "Train every [[variant]] of a config and print one table",
      [](Command& command, Options& options) {
        command.add_option("CONFIG", options.config, "TOML file with variants").required();
        command.add_option("--only", options.only, "Name of a variant; may be given several times")
            .repeated();
        command.add_option("--set", options.set, "Change an option of all variants").repeated();
        add_threads_option(command);
        add_json_flag(command, options.json);
      },
      run);
}

}  // namespace qkv::commands
