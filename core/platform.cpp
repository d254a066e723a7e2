#include "core/platform.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <thread>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __linux__
#include <sched.h>
#endif
#ifdef __APPLE__
#include <fcntl.h>
#include <mach-o/dyld.h>

#include <cerrno>
#include <string>
#endif

namespace qkv::platform {

static_assert(std::endian::native == std::endian::little,
              "qkv writes numbers into files and hashes them as they are in memory: it needs a "
              "little-endian processor");

std::filesystem::path program() {
#ifdef __APPLE__
  std::uint32_t size = 0;
  ::_NSGetExecutablePath(nullptr, &size);
  std::string path(size, '\0');
  ::_NSGetExecutablePath(path.data(), &size);
  return path.c_str();
#else
  return "/proc/self/exe";
#endif
}

Cores cores() {
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on a machine of more than 1024.
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    Cores cores;
    for (std::size_t i = 0; i < cores.size(); ++i) cores[i] = CPU_ISSET(i, &set);
    return cores;
  }
#endif
  const std::size_t count =
      std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, Cores().size());
  return ~Cores() >> (Cores().size() - count);
}

std::uint64_t memory() {
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && size > 0)
    bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min<std::uint64_t>(bytes, limit.rlim_cur);
  return bytes;
}

std::uint64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  constexpr std::uint64_t unit = 1;
#else
  constexpr std::uint64_t unit = 1024;
#endif
  return unit * static_cast<std::uint64_t>(usage.ru_maxrss);
}

void return_freed_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

int flush_to_disk(int file) {
#ifdef __APPLE__
  if (::fcntl(file, F_FULLFSYNC) == 0) return 0;
  if (errno == EIO || errno == EINTR) return -1;
    // Another error: the file system cannot flush the disk's cache.
#endif
  return ::fsync(file);
}

std::timespec modification_time(const struct stat& status) {
#ifdef __APPLE__
  return status.st_mtimespec;
#else
  return status.st_mtim;
#endif
}

}  // namespace qkv::platform
