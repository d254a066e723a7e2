#pragma once

#include <functional>

namespace CLI {
class App;
}

/// The subcommands, a file each. `add_x` declares the options of `qkv x`; when the user chose it,
/// `action` becomes what to run, which returns the exit code.
namespace qkv::commands {

using Action = std::function<int()>;

void add_bench(CLI::App& program, Action& action);
void add_train(CLI::App& program, Action& action);
void add_resume(CLI::App& program, Action& action);
void add_compare(CLI::App& program, Action& action);
void add_eval(CLI::App& program, Action& action);
void add_predict(CLI::App& program, Action& action);
void add_embed(CLI::App& program, Action& action);
void add_attend(CLI::App& program, Action& action);
void add_probe(CLI::App& program, Action& action);
void add_inspect(CLI::App& program, Action& action);
void add_gradients(CLI::App& program, Action& action);
void add_generate(CLI::App& program, Action& action);
void add_explain(CLI::App& program, Action& action);
void add_report(CLI::App& program, Action& action);
void add_verify(CLI::App& program, Action& action);

}  // namespace qkv::commands
