#pragma once

/// The subcommands, a file each. `add_x` declares `qkv x` and its options.
namespace qkv::commands {

class CommandLine;

void add_bench(CommandLine& program);
void add_train(CommandLine& program);
void add_resume(CommandLine& program);
void add_compare(CommandLine& program);
void add_eval(CommandLine& program);
void add_predict(CommandLine& program);
void add_embed(CommandLine& program);
void add_attend(CommandLine& program);
void add_probe(CommandLine& program);
void add_inspect(CommandLine& program);
void add_gradients(CommandLine& program);
void add_generate(CommandLine& program);
void add_explain(CommandLine& program);
void add_report(CommandLine& program);
void add_verify(CommandLine& program);

}  // namespace qkv::commands
