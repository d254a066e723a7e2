// libqkv_faults.so, to be preloaded into a program (LD_PRELOAD): a call of the system that opens,
// writes, flushes, names or removes files fails, or the process ends there as if it was killed.
//
//     QKV_FAULT="kill 12"      at call 12, counted from 0 (-1: at none); or "EIO 12", "ENOSPC 12"
//     QKV_FAULT_COUNT=FILE     gets the number of calls at the end
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "tests/support/system_calls.h"

using qkv::SystemCalls;

namespace {

class Watch {
 public:
  Watch() {
    const char* const wanted = std::getenv("QKV_FAULT");
    if (!wanted) return;
    std::istringstream text(wanted);
    std::string kind;
    int at = -1;
    text >> kind >> at;
    const bool kills = kind == "kill";
    calls_.emplace(kills ? SystemCalls::Fault::kill : SystemCalls::Fault::error, at,
                   kind == "ENOSPC" ? ENOSPC : EIO);
  }
  ~Watch() {
    const char* const file = std::getenv("QKV_FAULT_COUNT");
    if (!calls_ || !file) return;
    const int count = calls_->count();
    calls_.reset();
    std::ofstream(file) << count;
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  std::optional<SystemCalls> calls_;
} watch;

template <class F>
F* real(const char* name, F*) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

bool is_written(int file) {
  const int flags = ::fcntl(file, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace

extern "C" {

ssize_t __wrap_write(int file, const void* bytes, size_t count);
int __wrap_fsync(int file);
int __wrap_link(const char* from, const char* to);
int __wrap_rename(const char* from, const char* to);
int __wrap_unlink(const char* file);

ssize_t __real_write(int file, const void* bytes, size_t count) {
  return real("write", &::write)(file, bytes, count);
}
int __real_fsync(int file) {
  return real("fsync", &::fsync)(file);
}
int __real_link(const char* from, const char* to) {
  return real("link", &::link)(from, to);
}
int __real_rename(const char* from, const char* to) {
  return real("rename", &::rename)(from, to);
}
int __real_unlink(const char* file) {
  return real("unlink", &::unlink)(file);
}

ssize_t write(int file, const void* bytes, size_t count) {
  return __wrap_write(file, bytes, count);
}
int fsync(int file) {
  return __wrap_fsync(file);
}
int link(const char* from, const char* to) noexcept {
  return __wrap_link(from, to);
}
int rename(const char* from, const char* to) noexcept {
  return __wrap_rename(from, to);
}
int unlink(const char* file) noexcept {
  return __wrap_unlink(file);
}

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if ((flags & O_ACCMODE) != O_RDONLY && SystemCalls::fails(fmt::format("open {}", path)))
    return -1;
  return real("open", &::open)(path, flags, mode);
}
// It closes the file all the same, as the system does.
int close(int file) {
  const bool fails = is_written(file) && SystemCalls::fails("close");
  const int error = errno;
  const int result = real("close", &::close)(file);
  if (!fails) return result;
  errno = error;
  return -1;
}
int flock(int file, int operation) noexcept {
  return SystemCalls::fails("flock") ? -1 : real("flock", &::flock)(file, operation);
}
int ftruncate(int file, off_t length) noexcept {
  return SystemCalls::fails("ftruncate") ? -1 : real("ftruncate", &::ftruncate)(file, length);
}
int mkdir(const char* path, mode_t mode) noexcept {
  if (SystemCalls::fails(fmt::format("mkdir {}", path))) return -1;
  return real("mkdir", &::mkdir)(path, mode);
}
}
