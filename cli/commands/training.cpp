#include "cli/commands/training.h"

#include <algorithm>

namespace qkv::commands {
void add_reporting_flags(Command& command, Reporting& reporting) {
  command.add_flag("--check", reporting.check,
                   "End with exit code 1 when a [[probe]] fails [0, said on stderr]");
  add_json_flag(command, reporting.json);
}

int stopped(const Outcome& outcome, const std::string& command) {
  fmt::print(stderr, "continue with: {}\n", command);
  return 128 + outcome.signal;
}

int judged(const std::vector<VariantProbe>& probes, const Reporting& reporting) {
  const auto failed = std::ranges::count_if(
      probes, [](const VariantProbe& probe) { return !probe.result.passes(); });
  if (failed == 0) return 0;
  fmt::print(stderr, "{} of {} probes fail{}\n", failed, probes.size(),
             reporting.check ? "" : "; with --check the exit code is 1 then");
  return reporting.check ? 1 : 0;
}

int conclude(const Run& run, const RunFolder& folder, const Outcome& outcome,
             const Reporting& reporting) {
  const auto probes =
      outcome.signal ? std::vector<VariantProbe>{} : probed(folder, run.config.probes);
  if (reporting.json) {
    Json document = {{"run", folder.path().string()},
                     {"parameters", parameter_count(*run.network)},
                     {"step", run.step},
                     {"seconds", outcome.seconds}};
    if (outcome.test) document["test"] = to_json(*outcome.test);
    document["probes"] = to_json(probes);
    print(document);
  } else {
    if (outcome.test) fmt::print("test split: {}\n", to_text(*outcome.test));
    if (!probes.empty()) fmt::print("{}", to_table(probes));
  }
  if (outcome.signal) return stopped(outcome, "qkv resume " + shell_word(folder.path().string()));
  say_written(folder.path());
  return judged(probes, reporting);
}

std::string shell_word(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_-./=,:+@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace qkv::commands
