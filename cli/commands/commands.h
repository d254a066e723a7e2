#pragma once

/// The subcommands, a file each: `x_command` declares `qkv x`.
namespace qkv::commands {

struct Command;
using MakeCommand = Command();

MakeCommand train_command, resume_command, compare_command, fit_command, sweep_command,
    find_lr_command, runs_command, eval_command, generate_command, predict_command, embed_command,
    attend_command, explain_command, ablate_command, patch_command, gradients_command,
    inspect_command, report_command, page_command, activations_command, export_command,
    import_command, verify_command, verify_resume_command, gradcheck_command, probe_command,
    linear_probe_command, bench_command;

/// In the order of the program's help.
inline constexpr MakeCommand* all_commands[] = {
    train_command,     resume_command,  compare_command,      fit_command,
    sweep_command,     find_lr_command, runs_command,         eval_command,
    generate_command,  predict_command, embed_command,        attend_command,
    explain_command,   ablate_command,  patch_command,        gradients_command,
    inspect_command,   report_command,  page_command,         activations_command,
    export_command,    import_command,  verify_command,       verify_resume_command,
    gradcheck_command, probe_command,   linear_probe_command, bench_command};

}  // namespace qkv::commands
