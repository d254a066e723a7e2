#pragma once

#include <string_view>

#include "core/error.h"

/// stdout and stderr. What cannot be written to stderr is lost, and nothing else: a terminal that
/// goes away, a full disk or a closed pipe never ends a training.
namespace qkv {

/// The reader of stdout has gone, as `head` does: nobody wants the rest.
struct ReaderGone : Error {
  using Error::Error;
};

/// To be called before any file is opened. Opens the file descriptors 0 to 2 where they are closed,
/// so that no file gets them and no output is written into a file of a run; lets writes to
/// a closed pipe or past a limit of file sizes fail instead of killing the process.
void prepare_standard_streams();

/// Writes to stderr, with control characters other than ends of lines as signs.
void print_note(std::string_view text);
/// Writes to stderr what moves the cursor of a terminal.
void draw_on_terminal(std::string_view text);

/// Writes to stdout. Throws ReaderGone, or FileError naming the reason.
void print_result(std::string_view text);
/// Hands what was printed to the system; throws as `print_result` does.
void flush_results();

}  // namespace qkv
