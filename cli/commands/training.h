#pragma once

#include <functional>
#include <memory>

#include "cli/commands/shared.h"
#include "inspect/tensorboard.h"
#include "train/loop/session.h"
#include "train/ranks/communicator.h"
#include "train/run/run.h"

/// Helpers that train, resume and compare share.
namespace qkv::commands {

using RankCommand = Document(const Communicator& ranks, const StopSignal& stop);
/// Carries out a command, which all ranks do together. Rank 0 shows results and errors; of the
/// others, an error that rank 0 does not have within five seconds. An error of one ends all of
/// them.
Document on_all_ranks(const std::function<RankCommand>& command);

/// Rank 0 shows progress; the others are silent.
std::unique_ptr<Callback> progress_of(const Communicator& ranks, const StopSignal& stop);

/// Declares --check, with which a probe that fails makes the exit code 1.
Option check_flag(bool& check);

/// Finds what cannot be asked of a run before it is trained, since an untrained model answers, too:
/// throws UserError or, where the run has other data than its config, leaves such probes out and
/// tells the callback.
void check_or_leave_out_probes(Run& run, bool other_data, Callback& callback);

/// Notes how to continue after a signal, `command` as a shell takes it, and sets the exit code.
void note_stopped(Document& document, int signal, const std::string& command);

/// Notes how many probes fail and sets the exit code.
void judge(Document& document, const std::vector<VariantProbe>& probes, bool check);

/// The outcome of a single run.
Document conclude(const Run& run, const RunFolder& folder, const Outcome& outcome, bool check);

/// `text` as one word of a shell's command line.
std::string shell_word(const std::string& text);

}  // namespace qkv::commands
