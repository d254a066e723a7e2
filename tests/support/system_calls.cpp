#include "tests/support/system_calls.h"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace qkv {
namespace {

SystemCalls* watching = nullptr;

std::string name_of(int file) {
  return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", file)).string();
}

/// Notes a call. True when it fails; does not return when the process is killed.
bool fails(const std::string& call) {
  watching->note(call);
  const SystemCalls::Fault fault = watching->next();
  if (fault == SystemCalls::Fault::kill) ::_exit(SystemCalls::killed);
  if (fault == SystemCalls::Fault::error) errno = EIO;
  return fault == SystemCalls::Fault::error;
}

}  // namespace

SystemCalls::SystemCalls(Fault fault, int at) : fault_(fault), at_(at) {
  watching = this;
}

SystemCalls::~SystemCalls() {
  watching = nullptr;
}

void SystemCalls::note(const std::string& call) {
  if (call.starts_with("write ") && !calls_.empty() && calls_.back() == call) return;
  calls_.push_back(call);
}

SystemCalls::Fault SystemCalls::next() {
  return count_++ == at_ ? fault_ : Fault::none;
}

}  // namespace qkv

extern "C" {

ssize_t __real_write(int file, const void* bytes, size_t count);
int __real_fsync(int file);
int __real_link(const char* from, const char* to);
int __real_rename(const char* from, const char* to);
int __real_unlink(const char* file);

ssize_t __wrap_write(int file, const void* bytes, size_t count) {
  if (!qkv::watching) return __real_write(file, bytes, count);
  // The first half is there when the fault happens.
  const size_t half = qkv::watching->flushes() ? 0 : count / 2;
  const ssize_t first = half ? __real_write(file, bytes, half) : 0;
  if (first < 0 || qkv::fails("write " + qkv::name_of(file))) return -1;
  const ssize_t rest = __real_write(file, static_cast<const char*>(bytes) + half, count - half);
  return rest < 0 ? rest : first + rest;
}
int __wrap_fsync(int file) {
  if (!qkv::watching) return __real_fsync(file);
  if (qkv::fails("fsync " + qkv::name_of(file))) return -1;
  return qkv::watching->flushes() ? __real_fsync(file) : 0;
}
int __wrap_link(const char* from, const char* to) {
  if (qkv::watching && qkv::fails(fmt::format("link {} {}", from, to))) return -1;
  return __real_link(from, to);
}
int __wrap_rename(const char* from, const char* to) {
  if (qkv::watching && qkv::fails(fmt::format("rename {} {}", from, to))) return -1;
  return __real_rename(from, to);
}
int __wrap_unlink(const char* file) {
  if (qkv::watching && qkv::fails(fmt::format("unlink {}", file))) return -1;
  return __real_unlink(file);
}
}
