#include "cli/commands/shared.h"

namespace qkv::commands {
namespace {

struct ProbeOptions {
  std::string model;
};

Document probe(const ProbeOptions& options) {
  const LoadedModel model = load_model(options.model);
  require<UserError>(!model.config.probes.empty(),
                     "{}: the config that it was trained with has no [[probe]]", options.model);
  const auto probes = probed(model);
  Document document;
  document.data = object({{"probes", to_json(probes)}});
  document.add_table(to_table(probes));
  const auto passes = [](const VariantProbe& checked) { return checked.result.passes(); };
  document.exit_code = std::ranges::all_of(probes, passes) ? 0 : 1;
  return document;
}

}  // namespace

Command probe_command() {
  const auto o = std::make_shared<ProbeOptions>();
  return {.name = "probe",
          .summary = "Check each [[probe]] of a model's config, exit code 1 when one fails",
          .options = {model_argument(o->model)},
          .run = [o](const Stream&) { return probe(*o); }};
}

}  // namespace qkv::commands
