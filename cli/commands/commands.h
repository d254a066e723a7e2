#pragma once

/// The subcommands, a file each. `add_x` declares `qkv x` and its options.
namespace qkv::commands {

class CommandLine;
using AddCommand = void(CommandLine& program);

AddCommand add_train, add_resume, add_compare, add_eval, add_generate, add_predict, add_embed,
    add_attend, add_explain, add_ablate, add_patch, add_gradients, add_inspect, add_report,
    add_activations, add_export, add_import, add_verify, add_verify_resume, add_gradcheck,
    add_probe, add_linear_probe, add_bench;

/// In the order of the program's help.
inline constexpr AddCommand* all_commands[] = {
    add_train,   add_resume,       add_compare, add_eval,          add_generate,
    add_predict, add_embed,        add_attend,  add_explain,       add_ablate,
    add_patch,   add_gradients,    add_inspect, add_report,        add_activations,
    add_export,  add_import,       add_verify,  add_verify_resume, add_gradcheck,
    add_probe,   add_linear_probe, add_bench};

}  // namespace qkv::commands
