#pragma once

#include <string>

namespace qkv {

/// What this build of the program is for: "native", the processor that it was built on, or a level
/// of the x86-64 psABI such as "x86-64-v3".
extern const char* const processor_of_build;

/// An installed portable build has builds for newer processors beside it, in
/// ../libexec/qkv/LEVEL/qkv: replaces this process by the one of the highest level that the
/// processor has, or of the level that the environment variable QKV_CPU names. Returns where this
/// build is that one. Throws UserError when QKV_CPU names none that there is or that can run here.
void run_build_for_processor(char** argv);

}  // namespace qkv
