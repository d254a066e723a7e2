#include "train/storage/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/platform.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_failure(const fs::path& path, std::string_view action, int error,
                                std::string_view hint = "") {
  throw FileError(fmt::format("{}: cannot {}: {}{}", path.string(), action,
                              std::generic_category().message(error), hint));
}

/// Repeats a system call that a signal interrupted.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const noexcept { return fd_; }
  bool close() noexcept {
    // An interrupted close has released the descriptor all the same.
    return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0 || errno == EINTR;
  }

 private:
  int fd_;
};

/// Writes all bytes; false, with errno, when that fails.
bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(file, bytes.data(), bytes.size()); });
    if (written == 0) errno = ENOSPC;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

fs::path directory_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// A temporary file beside `target`, removed again unless it replaces the target.
class Temporary {
 public:
  explicit Temporary(fs::path target) : target_(std::move(target)) {}
  ~Temporary() { discard(); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  /// Writes the file and flushes it.
  void write(std::span<const std::byte> bytes, std::string_view end) {
    const std::size_t size = bytes.size() + end.size();
    file_ = Descriptor(claim_name([](const char* name) {
      return ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }));
    if (file_.get() < 0) fail("create a file beside it");
    if (!write_all(file_.get(), bytes) || !write_all(file_.get(), std::as_bytes(std::span(end))))
      fail("write", size);
    // A failed flush is final: the system may have dropped the data, so a retry proves nothing.
    if (uninterrupted([&] { return platform::flush_to_disk(file_.get()); }) < 0)
      fail("flush", size);
    if (!file_.close()) fail("close", size);
  }

  /// Makes the file a link to `existing`; false when that cannot be.
  bool link(const fs::path& existing) {
    return claim_name([&](const char* name) { return ::link(existing.c_str(), name); }) >= 0;
  }

  /// Renames the file to `target` and flushes the directory.
  void publish() {
    if (::rename(name_.c_str(), target_.c_str()) < 0) fail("rename a file to it");
    // Between two names of one file, rename does nothing and the first name remains.
    discard();
    const fs::path directory = directory_of(target_);
    Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened.get() < 0) fail("open its directory");
    const bool flushed = uninterrupted([&] { return platform::flush_to_disk(opened.get()); }) == 0;
    // EINVAL: a file system whose directories cannot be flushed.
    if (!flushed && errno != EINVAL) fail("flush its directory");
  }

 private:
  /// Calls `create(name)` with names until one is free; returns the result, negative on failure.
  template <class Create>
  int claim_name(Create create) {
    constexpr int attempts = 1000;  // process ids recur: a killed process may have left its files
    for (int n = 0; n < attempts; ++n) {
      fs::path name = fmt::format("{}.tmp.{}.{}", target_.string(), ::getpid(), n);
      if (const int result = create(name.c_str()); result >= 0) {
        name_ = std::move(name);
        return result;
      }
      if (errno != EEXIST) break;
    }
    return -1;
  }

  void discard() noexcept {
    file_.close();
    if (!name_.empty()) ::unlink(name_.c_str());
    name_.clear();
  }

  [[noreturn]] void fail(std::string_view action, std::size_t needed = 0) {
    const int error = errno;
    discard();
    std::string hint;
    if (error == ENOSPC) {
      std::error_code unknown;
      const fs::space_info space = fs::space(directory_of(target_), unknown);
      if (!unknown) hint = fmt::format(" ({} bytes needed, {} free)", needed, space.available);
    }
    if (error == EFBIG)
      hint = fmt::format(" ({} bytes needed, see `ulimit -f` for the limit)", needed);
    throw_failure(target_, action, error, hint);
  }

  fs::path target_;
  fs::path name_;
  Descriptor file_;
};

/// Writes to a file that is opened with additional `flags`.
void write_to(const fs::path& path, int flags, std::string_view text) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | flags, 0666));
  if (file.get() < 0 || !write_all(file.get(), std::as_bytes(std::span(text))) || !file.close())
    throw_failure(path, "write", errno);
}

/// Where the symbolic links of a path lead, whether or not there is a file.
fs::path followed(fs::path path) {
  constexpr int most_links = 40;  // as Linux follows
  for (int i = 0; i < most_links; ++i) {
    std::error_code no_link;
    const fs::path next = fs::read_symlink(path, no_link);
    if (no_link) return path;
    path = directory_of(path) / next;
  }
  throw_failure(path, "write", ELOOP);
}

}  // namespace

void write_durably(const fs::path& path, std::span<const std::byte> bytes, std::string_view end) {
  Temporary temporary(path);
  temporary.write(bytes, end);
  temporary.publish();
}

void write_durably(const fs::path& path, std::string_view text) {
  write_durably(path, std::as_bytes(std::span(text)));
}

void append(const fs::path& path, std::string_view bytes) {
  write_to(path, O_CREAT | O_APPEND | O_NOFOLLOW, bytes);
}

void link_durably(const fs::path& existing, const fs::path& name) {
  Temporary temporary(name);
  if (temporary.link(existing)) return temporary.publish();
  write_durably(name, read_file(existing, std::numeric_limits<std::uint64_t>::max()));
}

void write_result(const fs::path& path, std::string_view text, const ResultKind& kind) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_to(path, 0, text);
  if (fs::exists(status)) {
    const auto bytes = InputFile(path).read(0, 4096);
    const std::string_view beginning(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    require<UserError>(beginning.empty() || kind.begins(beginning),
                       "{}: exists and is not {}; name another file, or remove it", path.string(),
                       kind.name);
  }
  write_durably(followed(path), text);
}

std::string read_file(const fs::path& path, std::uint64_t max_bytes) {
  const InputFile file(path);
  require<UserError>(file.size() <= max_bytes, "{}: holds {} bytes; at most {} can be read",
                     path.string(), file.size(), max_bytes);
  const auto bytes = file.read(0, file.size());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace qkv
