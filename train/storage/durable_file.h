#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/input_file.h"

namespace qkv {

/// Replaces the contents of the file `path` by `bytes` and `end` atomically: whatever fails and
/// whenever the machine stops, a reader finds the complete old file or the complete new one; once
/// the call has returned, the new one is on the disk. The directory must exist. Throws FileError
/// naming the path and the failure, and the bytes needed and free when the disk is full. A killed
/// process may leave a file "<path>.tmp.<process>.<n>" behind, which is never read; `RunFolder`
/// removes those of runs.
void write_durably(const std::filesystem::path& path, std::span<const std::byte> bytes,
                   std::string_view end = {});
void write_durably(const std::filesystem::path& path, std::string_view text);

/// Adds bytes to the end of a file, which is created where there is none; a link is not followed.
/// Throws FileError naming the path and the failure; a part of them may then be there.
void append(const std::filesystem::path& path, std::string_view bytes);

/// Makes `name` another name of the file `existing`, with the same promise. Where the file system
/// has no hard links, `name` becomes a copy.
void link_durably(const std::filesystem::path& existing, const std::filesystem::path& name);

/// A kind of file that a command writes where a user asks for it.
struct ResultKind {
  std::string_view name;                       ///< "a page of qkv report"
  bool (*begins)(std::string_view beginning);  ///< whether a file begins as one of this kind
};

/// Writes a result for the user: a file as `write_durably` does, of a symbolic link the file that
/// it leads to; a device or a pipe is written to. Throws UserError when the file exists, is not
/// empty and is not of this kind, so that no result replaces what was not a result; else FileError.
void write_result(const std::filesystem::path& path, std::string_view text, const ResultKind& kind);

/// The contents of a regular file of at most `max_bytes` bytes. Throws UserError naming the path
/// when there is no such file or it cannot be opened, FileError when reading it fails.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

}  // namespace qkv
