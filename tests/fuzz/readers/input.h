#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

/// What the harnesses of script/fuzz share.
namespace qkv::fuzz {

/// Defined by each harness: reads an input that libFuzzer made. An `Error` refuses it; any other
/// exception, a crash, and what the sanitizers report are findings.
void read(std::span<const std::byte> input);

/// A file with the input, the same one each time; in memory, where the system has such a folder.
std::filesystem::path file_of(std::span<const std::byte> input);

std::string_view text_of(std::span<const std::byte> input);

/// What must hold whatever the input is.
void demand(bool ok);

}  // namespace qkv::fuzz
