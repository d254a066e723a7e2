#include "cli/commands/training.h"

#include <algorithm>

namespace qkv::commands {

void add_check_flag(Command& command, bool& check) {
  command.add_flag("--check", check,
                   "End with exit code 1 when a [[probe]] fails [0, noted on stderr]");
}

void note_stopped(Document& document, int signal, const std::string& command) {
  document.add_note("continue with: {}", command);
  document.exit_code = 128 + signal;
}

void judge(Document& document, const std::vector<VariantProbe>& probes, bool check) {
  const auto failed = std::ranges::count_if(
      probes, [](const VariantProbe& probe) { return !probe.result.passes(); });
  if (failed == 0) return;
  document.add_note("{} of {} probes fail{}", failed, probes.size(),
                    check ? "" : "; with --check the exit code is 1 then");
  document.exit_code = check ? 1 : 0;
}

Document conclude(const Run& run, const RunFolder& folder, const Outcome& outcome, bool check) {
  const auto probes = outcome.signal ? std::vector<VariantProbe>{} : probed(run);
  Document document;
  document.data = {{"run", folder.path().string()},
                   {"parameters", parameter_count(*run.network)},
                   {"step", run.step},
                   {"seconds", outcome.seconds}};
  if (outcome.test) document.data["test"] = to_json(*outcome.test);
  document.data["probes"] = to_json(probes);
  if (outcome.test) add_evaluation(document, "test split", *outcome.test);
  if (!probes.empty()) document.add_table(to_table(probes));
  if (outcome.signal) {
    note_stopped(document, outcome.signal, "qkv resume " + shell_word(folder.path().string()));
    return document;
  }
  note_written(document, folder.path());
  judge(document, probes, check);
  return document;
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
