#include "cli/commands/shared.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string model;
  bool json = false;
};

int run(const Options& options) {
  const Trained model = load_trained(options.model);
  require<UserError>(!model.config.probes.empty(),
                     "{}: the config that it was trained with has no [[probe]]", options.model);
  std::vector<VariantProbe> probes;
  for (ProbeResult& result : check_probes(model)) probes.push_back({"", std::move(result)});
  if (options.json)
    print({{"probes", to_json(probes)}});
  else
    fmt::print("{}", to_table(probes));
  const auto passes = [](const VariantProbe& probe) { return probe.result.passes(); };
  return std::ranges::all_of(probes, passes) ? 0 : 1;
}

}  // namespace

void add_probe(CommandLine& program) {
  add_command<Options>(
      program, "probe", "Check each [[probe]] of a model's config, exit code 1 when one fails",
      [](Command& command, Options& options) {
        add_model_argument(command, options.model);
        add_json_flag(command, options.json);
      },
      run);
}

}  // namespace qkv::commands
