#include <clocale>
#include <cstdio>
#include <exception>

#include "cli/commands/command_line.h"
#include "cli/commands/commands.h"
#include "core/error.h"

namespace {

constexpr int failed = 1, wrong_use = 2;

int report(const char* what, int code) {
  fmt::print(stderr, "qkv: {}\n", what);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  qkv::commands::CommandLine program(
      "qkv", "Train small attention models and see what they learned", QKV_VERSION);
  for (const auto add : qkv::commands::all_commands) add(program);
  try {
    const int code = program.run(argc, argv);
    qkv::require<qkv::Error>(std::fflush(stdout) == 0, "cannot write the results to stdout");
    return code;
  } catch (const qkv::UserError& error) {
    return report(error.what(), wrong_use);
  } catch (const std::exception& error) {
    return report(error.what(), failed);
  }
}
