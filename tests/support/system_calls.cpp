#include "tests/support/system_calls.h"

#include <fmt/format.h>
#include <sys/types.h>

#include <filesystem>

namespace qkv {
namespace {

SystemCalls* watching = nullptr;

void note_file(const char* call, int file) {
  if (!watching) return;
  const auto link = fmt::format("/proc/self/fd/{}", file);
  watching->note(fmt::format("{} {}", call, std::filesystem::read_symlink(link).string()));
}

void note_names(const char* call, const char* from, const char* to) {
  if (watching) watching->note(fmt::format("{} {} {}", call, from, to));
}

}  // namespace

SystemCalls::SystemCalls() {
  watching = this;
}

SystemCalls::~SystemCalls() {
  watching = nullptr;
}

void SystemCalls::note(const std::string& call) {
  if (call.starts_with("write ") && !calls_.empty() && calls_.back() == call) return;
  calls_.push_back(call);
}

}  // namespace qkv

extern "C" {

ssize_t __real_write(int file, const void* bytes, size_t count);
int __real_fsync(int file);
int __real_link(const char* from, const char* to);
int __real_rename(const char* from, const char* to);

ssize_t __wrap_write(int file, const void* bytes, size_t count) {
  qkv::note_file("write", file);
  return __real_write(file, bytes, count);
}
int __wrap_fsync(int file) {
  qkv::note_file("fsync", file);
  return __real_fsync(file);
}
int __wrap_link(const char* from, const char* to) {
  qkv::note_names("link", from, to);
  return __real_link(from, to);
}
int __wrap_rename(const char* from, const char* to) {
  qkv::note_names("rename", from, to);
  return __real_rename(from, to);
}
}
