#include <fmt/format.h>

#include <clocale>

#include "cli/commands/command_line.h"
#include "cli/failure.h"
#include "cli/processor.h"
#include "cli/standard_streams.h"

namespace {

/// `wcwidth` then takes characters as UTF-8. macOS does not have the first of the names.
void use_utf8() {
  for (const char* name : {"C.UTF-8", "UTF-8"})
    if (std::setlocale(LC_CTYPE, name)) return;
}

}  // namespace

int main(int argc, char** argv) {
  qkv::prepare_standard_streams();
  use_utf8();
  try {
    qkv::run_build_for_processor(argv);
    return qkv::commands::run_program(fmt::format("{} ({})", QKV_VERSION, qkv::processor_of_build),
                                      argc, argv);
  } catch (const qkv::ReaderGone&) {
    return 0;
  } catch (...) {
    const auto [text, exit_code] = qkv::current_failure();
    qkv::print_note("qkv: " + text + "\n");
    return exit_code;
  }
}
