#include "train/commands/shared.h"
#include "train/storage/durable_file.h"
#include "train/trainer.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> set;
  std::string run;
  bool json = false;
};

std::string footer() {
  std::string text = "Options of a config, with their defaults:\n";
  for (const OptionHelp& option : option_help())
    text += fmt::format("  {} = {}  ({}) {}\n", option.key, option.default_value,
                        option.type_or_choices, option.help);
  return text;
}

int run(const Options& options) {
  StopSignal stop;
  const Config config = read_config(options.config, options.set).base;
  const RunFolder folder(options.run.empty() ? std::filesystem::path("runs") / config.name
                                             : std::filesystem::path(options.run));
  Run run = start_run(config);
  check_probes(run);  // an untrained model answers, too: what cannot be asked is found now
  folder.create();
  write_durably(folder.config(), to_toml(config));
  const Outcome outcome = train(run, folder, stop);
  const auto probes = outcome.signal ? std::vector<VariantProbe>{} : probed(folder);
  Json result = {{"run", folder.path().string()},
                 {"parameters", parameter_count(*run.network)},
                 {"step", run.step},
                 {"seconds", outcome.seconds}};
  if (outcome.test) result["test"] = to_json(*outcome.test);
  result["probes"] = to_json(probes);
  if (options.json)
    print(result);
  else if (!probes.empty())
    fmt::print("{}", to_table(probes));
  return outcome.signal ? 128 + outcome.signal : 0;
}

}  // namespace

void add_train(CommandLine& program) {
  add_command<Options>(
      program, "train", "Train a model from a config",
      [](Command& command, Options& options) {
        command.add_option("CONFIG", options.config, "TOML file, such as configs/bank.toml")
            .required();
        command.add_option("--set", options.set, "Change an option: --set train.steps=100")
            .repeated();
        command.add_option("--run", options.run, "Folder of the run [runs/NAME]");
        add_threads_option(command);
        add_json_flag(command, options.json);
        command.footer(footer);
      },
      run);
}

}  // namespace qkv::commands
