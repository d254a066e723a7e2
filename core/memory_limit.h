#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace qkv {

/// Bytes of memory that the process can have: the machine's, or less where its control group, one
/// above it, or its address space (RLIMIT_AS) is limited. Other processes may use a part of them.
std::uint64_t memory_limit();

/// "512 bytes", "1.5 MiB", "51.2 GiB"
std::string memory_size(double bytes);
/// The bytes of "4GB", "512 MB" or "1.5GiB"; none for what is no size > 0.
std::optional<double> parse_memory_size(std::string_view text);

}  // namespace qkv
