#include <clocale>
#include <exception>

#include "train/commands/shared.h"

namespace {

constexpr int failed = 1, wrong_use = 2;

int report(const char* what, int code) {
  fmt::print(stderr, "qkv: {}\n", what);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  CLI::App program("Train small attention models and see what they learned", "qkv");
  program.set_version_flag("--version", QKV_VERSION);
  program.require_subcommand(1);
  qkv::commands::Action action;
  for (const auto add :
       {qkv::commands::add_train, qkv::commands::add_resume, qkv::commands::add_compare,
        qkv::commands::add_eval, qkv::commands::add_generate, qkv::commands::add_predict,
        qkv::commands::add_embed, qkv::commands::add_attend, qkv::commands::add_explain,
        qkv::commands::add_gradients, qkv::commands::add_inspect, qkv::commands::add_report,
        qkv::commands::add_verify, qkv::commands::add_probe, qkv::commands::add_bench})
    add(program, action);
  try {
    program.parse(argc, argv);
    const int code = action();
    qkv::require<qkv::Error>(std::fflush(stdout) == 0, "cannot write the results to stdout");
    return code;
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && error.get_exit_code() != 0 && program.get_subcommands().empty())
      return report(fmt::format("there is no command {}; see qkv --help", argv[1]).c_str(),
                    wrong_use);
    return error.get_exit_code() == 0 ? program.exit(error) : report(error.what(), wrong_use);
  } catch (const qkv::UserError& error) {
    return report(error.what(), wrong_use);
  } catch (const std::exception& error) {
    return report(error.what(), failed);
  }
}
