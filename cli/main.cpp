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
  for (const auto add :
       {qkv::commands::add_train, qkv::commands::add_resume, qkv::commands::add_compare,
        qkv::commands::add_eval, qkv::commands::add_generate, qkv::commands::add_predict,
        qkv::commands::add_embed, qkv::commands::add_attend, qkv::commands::add_explain,
        qkv::commands::add_gradients, qkv::commands::add_inspect, qkv::commands::add_report,
        qkv::commands::add_verify, qkv::commands::add_probe, qkv::commands::add_bench})
    add(program);
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
