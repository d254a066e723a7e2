#include "cli/commands/training.h"
#include "train/config/option_list.h"

namespace qkv::commands {
namespace {

struct TrainCommandOptions {
  std::string config;
  std::vector<std::string> set;
  std::string run;
  bool check = false;
};

std::string footer() {
  std::string text =
      "Relative paths in a config are resolved against the config's folder, or the nearest folder\n"
      "above it that has such a file; paths after --set against the working folder.\n\n"
      "Options of a config, with their defaults:\n";
  Config defaults;
  for (const qkv::Option& option : options_of(defaults))
    text +=
        fmt::format("  {} = {}  ({}) {}\n", option.key, option.print(), option.type, option.help);
  return text;
}

Document train_from_config(const TrainCommandOptions& options) {
  return on_all_ranks([&](const Communicator& ranks, const StopSignal& stop) {
    const ConfigFile file = read_config(options.config, options.set);
    const Config& config = file.base;
    RunFolder folder(options.run.empty() ? std::filesystem::path("runs") / config.name
                                         : std::filesystem::path(options.run));
    require<UserError>(ensemble_of(folder.path()).size() == 1,
                       "{} holds an ensemble, which would answer together with the new run; remove "
                       "it, or choose another folder with --run",
                       folder.path().string());
    const auto progress = progress_of(ranks, stop);
    Run run = start_run(config, *progress);
    check_or_leave_out_probes(run, file.other_data, *progress);
    if (ranks.rank() == 0) folder.lock();
    TensorBoard logged(config, folder, *progress);
    const Outcome outcome = start(run, folder, logged, ranks);
    return ranks.rank() == 0 ? conclude(run, folder, outcome, options.check) : Document();
  });
}

}  // namespace

Command train_command() {
  const auto o = std::make_shared<TrainCommandOptions>();
  return {.name = "train",
          .summary = "Train a model from a config; under mpirun, on all ranks together",
          .options = {config_argument(o->config),
                      set_option(o->set),
                      {"--run FOLDER", &o->run, "Folder of the run [runs/NAME]"},
                      threads_option(),
                      check_flag(o->check)},
          .footer = footer(),
          .run = [o](const Stream&) { return train_from_config(*o); }};
}

}  // namespace qkv::commands
