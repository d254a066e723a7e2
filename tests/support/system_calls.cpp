#include "tests/support/system_calls.h"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace qkv {
namespace {

SystemCalls* alive = nullptr;

std::string name_of(int file) {
  return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", file)).string();
}

}  // namespace

SystemCalls::SystemCalls(Fault fault, int at, int error) : fault_(fault), at_(at), error_(error) {
  alive = this;
}

SystemCalls::~SystemCalls() {
  alive = nullptr;
}

SystemCalls* SystemCalls::watching() {
  return alive;
}

bool SystemCalls::fails(const std::string& call) {
  if (!alive) return false;
  const bool again =
      call.starts_with("write ") && !alive->calls_.empty() && alive->calls_.back() == call;
  if (!again) alive->calls_.push_back(call);
  const Fault fault = alive->count_++ == alive->at_ ? alive->fault_ : Fault::none;
  if (fault == Fault::kill) ::_exit(killed);
  if (fault == Fault::error) errno = alive->error_;
  return fault == Fault::error;
}

}  // namespace qkv

extern "C" {

ssize_t __real_write(int file, const void* bytes, size_t count);
int __real_fsync(int file);
int __real_link(const char* from, const char* to);
int __real_rename(const char* from, const char* to);
int __real_unlink(const char* file);

ssize_t __wrap_write(int file, const void* bytes, size_t count) {
  if (!qkv::SystemCalls::watching()) return __real_write(file, bytes, count);
  // The first half is there when the fault happens.
  const size_t half = qkv::SystemCalls::watching()->flushes() ? 0 : count / 2;
  const ssize_t first = half ? __real_write(file, bytes, half) : 0;
  if (first < 0 || qkv::SystemCalls::fails("write " + qkv::name_of(file))) return -1;
  const ssize_t rest = __real_write(file, static_cast<const char*>(bytes) + half, count - half);
  return rest < 0 ? rest : first + rest;
}
int __wrap_fsync(int file) {
  if (!qkv::SystemCalls::watching()) return __real_fsync(file);
  if (qkv::SystemCalls::fails("fsync " + qkv::name_of(file))) return -1;
  return qkv::SystemCalls::watching()->flushes() ? __real_fsync(file) : 0;
}
int __wrap_link(const char* from, const char* to) {
  if (qkv::SystemCalls::fails(fmt::format("link {} {}", from, to))) return -1;
  return __real_link(from, to);
}
int __wrap_rename(const char* from, const char* to) {
  if (qkv::SystemCalls::fails(fmt::format("rename {} {}", from, to))) return -1;
  return __real_rename(from, to);
}
int __wrap_unlink(const char* file) {
  if (qkv::SystemCalls::fails(fmt::format("unlink {}", file))) return -1;
  return __real_unlink(file);
}
}
