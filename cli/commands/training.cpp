#include "cli/commands/training.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "cli/failure.h"
#include "cli/standard_streams.h"

namespace qkv::commands {
namespace {

/// Ends all ranks after an exception, which most often is that of all of them.
[[noreturn]] void fail_all(const Communicator& ranks) {
  const auto [text, exit_code] = current_failure();
  if (ranks.rank() == 0) {
    print_note(fmt::format("qkv: {}\n", text));
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(5));  // rank 0 may end this one meanwhile
    print_note(fmt::format("qkv: rank {}: {}\n", ranks.rank(), text));
  }
  ranks.kill_others(exit_code);
  std::_Exit(exit_code);
}

}  // namespace

Document on_all_ranks(const std::function<RankCommand>& command) {
  const StopSignal stop;
  const auto ranks = connect();
  if (ranks->size() == 1) return command(*ranks, stop);
  try {
    Document document = command(*ranks, stop);
    all_gather(*ranks, 0);  // the others wait for rank 0, which tests the model
    return ranks->rank() == 0 ? document : Document();
  } catch (...) {
    fail_all(*ranks);
  }
}

std::unique_ptr<Callback> progress_of(const Communicator& ranks, const StopSignal& stop) {
  if (ranks.rank() == 0) return std::make_unique<Progress>(stop);
  return std::make_unique<SilentProgress>(stop);
}

Option check_flag(bool& check) {
  return {"--check", &check, "End with exit code 1 when a [[probe]] fails [0, noted on stderr]"};
}

void check_or_leave_out_probes(Run& run, bool other_data, Callback& callback) {
  if (other_data)
    for (const std::string& line : leave_out_probes(run)) callback.on_message(line);
  check_probes(run);
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
  document.data = object({{"run", folder.path().string()},
                          {"parameters", parameter_count(*run.network)},
                          {"step", run.step},
                          {"seconds", outcome.seconds}});
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
  for (const char c : text)
    if (c == '\'')
      quoted += "'\\''";
    else if (std::iscntrl(static_cast<unsigned char>(c)) && c != '\n' && c != '\t')
      quoted += fmt::format("'$'\\{:03o}''", static_cast<unsigned char>(c));  // printed as a sign
    else
      quoted += c;
  return quoted + "'";
}

}  // namespace qkv::commands
