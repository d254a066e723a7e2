#pragma once

#include "cli/commands/shared.h"
#include "cli/progress.h"
#include "train/session.h"

/// What train, resume and compare have in common.
namespace qkv::commands {

/// How the result of a training is reported.
struct Reporting {
  bool json = false;
  bool check = false;  ///< a probe that fails makes the exit code 1
};

void add_reporting_flags(Command& command, Reporting& reporting);

/// Says on stderr how to continue after a signal: `command` as a shell takes it. Returns the exit
/// code.
int stopped(const Outcome& outcome, const std::string& command);

/// Says on stderr how many probes fail. Returns the exit code.
int judged(const std::vector<VariantProbe>& probes, const Reporting& reporting);

/// Prints what became of a single run and returns the exit code.
int conclude(const Run& run, const RunFolder& folder, const Outcome& outcome,
             const Reporting& reporting);

/// `text` as one word of a shell's command line.
std::string shell_word(const std::string& text);

}  // namespace qkv::commands
