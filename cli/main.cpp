#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <clocale>
#include <string_view>
#include <tuple>

#include "cli/commands/command_line.h"
#include "cli/commands/commands.h"
#include "cli/failure.h"
#include "cli/processor.h"
#include "cli/standard_streams.h"

namespace {

/// OpenBLAS, as it is loaded, tries for ever to allocate its buffers where the address space is too
/// small for them.
void require_address_space() {
  constexpr rlim_t least = rlim_t{512} << 20;
  constexpr std::string_view error =
      "qkv: needs at least 512 MiB of address space; raise the limit (ulimit -v)\n";
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= least) return;
  std::ignore = ::write(STDERR_FILENO, error.data(), error.size());
  ::_exit(1);
}
/// Called before the libraries start.
[[gnu::used, gnu::section(".preinit_array")]] void (*const at_start)() = require_address_space;

int run(int argc, char** argv) {
  qkv::commands::CommandLine program("qkv",
                                     "Train small attention models and see what they learned",
                                     fmt::format("{} ({})", QKV_VERSION, qkv::processor_of_build));
  for (const auto add : qkv::commands::all_commands) add(program);
  return program.run(argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  qkv::prepare_standard_streams();
  std::setlocale(LC_CTYPE, "C.UTF-8");
  try {
    qkv::run_build_for_processor(argv);
    return run(argc, argv);
  } catch (const qkv::ReaderGone&) {
    return 0;
  } catch (...) {
    const auto [text, exit_code] = qkv::current_failure();
    qkv::print_note("qkv: " + text + "\n");
    return exit_code;
  }
}
