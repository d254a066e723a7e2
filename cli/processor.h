#pragma once

#include <span>
#include <string_view>

namespace qkv {

/// The target of this build of the program: "native", the processor that it was built on, or a
/// level of the x86-64 psABI such as "x86-64-v3".
extern const char* const processor_of_build;

/// The level to run: `wanted`, the value of the environment variable QKV_CPU, where it is one of
/// `able` or this build's `own`; without it the first of `able`, or this build where it is none of
/// them, as one for the processor that it was built on. `able` are installed and run here, highest
/// first. Throws UserError when `wanted` is none of them.
std::string_view chosen_level(std::string_view own, std::string_view wanted,
                              std::span<const std::string_view> able);

/// An installed portable build has builds for newer processors beside it, in
/// ../libexec/qkv/LEVEL/qkv: replaces this process by that of `chosen_level`. Returns where this
/// build is that one. Throws as `chosen_level`.
void run_build_for_processor(char** argv);

}  // namespace qkv
