#include "cli/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "cli/terminal.h"

namespace qkv {
namespace {

[[noreturn]] void throw_unwritten() {
  const int error = errno;
  if (error == EPIPE) throw ReaderGone("the reader of stdout has gone");
  throw FileError(fmt::format("cannot write the results to stdout: {}",
                              std::generic_category().message(error)));
}

}  // namespace

void prepare_standard_streams() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
    if (fcntl(number, F_GETFD) < 0)
      // In the direction that its users do not take, so that they fail as with a closed one.
      open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void print_note(std::string_view text) {
  draw_on_terminal(printable(text));
}

void draw_on_terminal(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void print_result(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw_unwritten();
}

void flush_results() {
  if (std::fflush(stdout) != 0) throw_unwritten();
}

}  // namespace qkv
