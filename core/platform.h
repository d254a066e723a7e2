#pragma once

#include <bitset>
#include <cstdint>
#include <ctime>
#include <filesystem>

struct stat;

/// Where operating systems and C libraries differ, apart from what runs before `main`
/// (cli/start.cpp).
namespace qkv::platform {

/// A path by which the running program can be opened and started; on Linux also after its file was
/// replaced.
std::filesystem::path program();

/// Cores by their numbers, from 0 on.
using Cores = std::bitset<1024>;
/// The cores that this process may run on.
Cores cores();

/// The machine's memory in bytes, or the address space that this process may have where that is
/// less.
std::uint64_t memory();
/// The memory that the process has taken at its peak, in bytes.
std::uint64_t peak_memory();
/// Gives freed memory that the C library keeps back to the system, where it can.
void return_freed_memory();

/// `fsync` that returns once the data are on the disk, not in the disk's cache: 0, or -1 and errno.
int flush_to_disk(int file);
std::timespec modification_time(const struct stat& status);

}  // namespace qkv::platform
