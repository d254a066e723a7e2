#include "core/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/platform.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_unreadable(const fs::path& path) {
  throw FileError(
      fmt::format("{}: cannot read: {}", path.string(), std::generic_category().message(errno)));
}

struct stat status_of(int file, const fs::path& path) {
  struct stat status = {};
  if (::fstat(file, &status) < 0) throw_unreadable(path);
  return status;
}

}  // namespace

InputFile::InputFile(fs::path path)
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  require<UserError>(file_ >= 0, "{}: cannot read: {}", path_.string(),
                     std::generic_category().message(errno));
  try {
    const struct stat status = status_of(file_, path_);
    require<UserError>(S_ISREG(status.st_mode), "{}: is not a file", path_.string());
    size_ = static_cast<std::uint64_t>(status.st_size);
    modified_ = platform::modification_time(status);
  } catch (...) {
    ::close(file_);
    throw;
  }
}

InputFile::~InputFile() {
  ::close(file_);
}

std::vector<std::byte> InputFile::read(std::uint64_t offset, std::uint64_t count) const {
  std::vector<std::byte> bytes(std::min(count, size_ - std::min(offset, size_)));
  for (auto rest = std::span(bytes); !rest.empty();) {
    const auto at = static_cast<off_t>(offset + bytes.size() - rest.size());
    const ssize_t got = ::pread(file_, rest.data(), rest.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_unreadable(path_);
    require<FileError>(got > 0, "{}: became shorter while it was read", path_.string());
    rest = rest.subspan(static_cast<std::size_t>(got));
  }
  return bytes;
}

void InputFile::require_unchanged() const {
  const struct stat status = status_of(file_, path_);
  const std::timespec modified = platform::modification_time(status);
  require<FileError>(static_cast<std::uint64_t>(status.st_size) == size_ &&
                         modified.tv_sec == modified_.tv_sec &&
                         modified.tv_nsec == modified_.tv_nsec,
                     "{}: was written to while it was in use; start again", path_.string());
}

}  // namespace qkv
