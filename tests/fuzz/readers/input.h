#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Input and checks that the harnesses of script/fuzz share.
namespace qkv::fuzz {

/// Defined by each harness: reads an input that libFuzzer made. An `Error` refuses it; any other
/// exception, a crash, and what the sanitizers report are findings. How many inputs were refused is
/// printed at the end.
void read(std::span<const std::byte> input);

/// A file of that name with the input, the same one each time; in memory, where the system has such
/// a folder.
std::filesystem::path file_of(std::span<const std::byte> input, std::string_view name = "input");

std::string_view text_of(std::span<const std::byte> input);

/// `count` parts of an input, which the bytes 0x1E separate; the last ones may be empty.
std::vector<std::span<const std::byte>> parts_of(std::span<const std::byte> input,
                                                 std::size_t count);

/// Ends the program unless `ok`, which must hold whatever the input is: a wrong result is a crash.
/// (clang 14 has no std::source_location.)
void demand(bool ok, const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace qkv::fuzz
