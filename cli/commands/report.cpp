#include "inspect/report/report.h"

#include "cli/commands/shared.h"
#include "train/storage/durable_file.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string run;
  std::string output;
  std::vector<std::string> sentences;
  bool json = false;
};

/// "runs/bank" -> "runs/bank/report.html"
std::filesystem::path output_of(const Options& options) {
  if (!options.output.empty()) return options.output;
  return RunFolder(options.run).report();
}

int run(const Options& options) {
  require<UserError>(std::filesystem::is_directory(options.run),
                     "{} is not a folder; a report is made of a run's or a comparison's folder",
                     options.run);
  const std::string page = report_page(options.run, options.sentences);
  const auto file = output_of(options);
  write_durably(file, page);
  if (options.json)
    print({{"file", file.string()}, {"bytes", page.size()}});
  else
    fmt::print("{}: {:.1f} MB, opens in any browser\n", file.string(),
               static_cast<double>(page.size()) / 1e6);
  return 0;
}

}  // namespace

void add_report(CommandLine& program) {
  add_command<Options>(
      program, "report", "Make one HTML page of what a run or a comparison learned",
      [](Command& command, Options& options) {
        command.add_option("RUN", options.run, "Folder of a run, or of `qkv compare`").required();
        command.add_option("-o,--output", options.output, "File to write [RUN/report.html]");
        command
            .add_option("--sentence", options.sentences,
                        "Show the attention of this sentence instead of some from the data; may be "
                        "given several times")
            .repeated();
        add_threads_option(command);
        add_json_flag(command, options.json);
      },
      run);
}

}  // namespace qkv::commands
