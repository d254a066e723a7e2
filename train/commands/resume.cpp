#include <fstream>

#include "train/commands/shared.h"
#include "train/storage/durable_file.h"
#include "train/trainer.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string run;
  std::vector<std::string> set;
};

/// The newest checkpoint that can be read, and its file. Damaged ones are named and passed over.
std::pair<Checkpoint, std::filesystem::path> newest_sound_checkpoint(const RunFolder& folder) {
  auto files = folder.checkpoints();
  if (std::filesystem::exists(folder.last())) files.push_back(folder.last());
  for (const auto& file : files) try {
      return {read_checkpoint(file), file};
    } catch (const UserError& error) {
      fmt::print(stderr, "{}; trying the one before\n", error.what());
    }
  throw UserError(fmt::format("{} holds no sound checkpoint; start again with `qkv train`",
                              folder.path().string()));
}

/// Drops what was measured after the checkpoint.
void rewind_metrics(const RunFolder& folder, std::int64_t step) {
  std::ifstream log(folder.metrics());
  std::string kept;
  for (std::string line; std::getline(log, line);) {
    const Json event = Json::parse(line, nullptr, false);
    if (event.is_object() && event.value("step", step + 1) <= step &&
        event.value("split", "") != "test")
      kept += line + "\n";
  }
  write_durably(folder.metrics(), kept);
}

int run(const Options& options) {
  StopSignal stop;
  const RunFolder folder(options.run);
  require<UserError>(std::filesystem::is_directory(folder.path()), "{} is not a run folder",
                     options.run);
  const auto [checkpoint, file] = newest_sound_checkpoint(folder);
  Config config = parse_config(checkpoint.config, file.string());
  const ModelOptions trained = config.model;
  apply_overrides(config, options.set);
  require<UserError>(config.model == trained,
                     "--set: a resume takes the model from the checkpoint; start a new run to "
                     "change options such as model.width");
  Run run = restore_run(config, checkpoint, file);
  rewind_metrics(folder, run.step);
  write_durably(folder.config(), to_toml(config));
  const Outcome outcome = train(run, folder, stop);
  return outcome.signal ? 128 + outcome.signal : 0;
}

}  // namespace

void add_resume(CommandLine& program) {
  add_command<Options>(
      program, "resume", "Go on from the newest sound checkpoint of a run",
      [](Command& command, Options& options) {
        command.add_option("RUN", options.run, "Folder of the run, such as runs/bank").required();
        command.add_option("--set", options.set, "Change an option: --set train.steps=1000")
            .repeated();
        add_threads_option(command);
      },
      run);
}

}  // namespace qkv::commands
