#include "train/storage/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "core/error.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

/// Whether `file` still is the name of an open file, which its last owner may have removed.
bool is_name_of(const fs::path& file, int descriptor) {
  struct stat named = {}, opened = {};
  return ::lstat(file.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

/// The file, open and created where there is none. A link is not followed, and a pipe or a device
/// not waited for.
int opened(const fs::path& file) {
  const int descriptor =
      ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
  require<UserError>(descriptor >= 0 || errno != ELOOP,
                     "{}: is a link, which is not followed; remove it", file.string());
  require<FileError>(descriptor >= 0, "{}: cannot open: {}", file.string(),
                     std::generic_category().message(errno));
  return descriptor;
}

/// The process id in a lock; empty where none was written. Throws UserError when the file is no
/// lock, so that nobody's file is overwritten.
std::string owner_in(int descriptor, const fs::path& file) {
  std::array<char, 32> bytes{};
  struct stat status = {};
  const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  const ssize_t count = regular ? ::pread(descriptor, bytes.data(), bytes.size(), 0) : -1;
  std::string text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (text.ends_with('\n')) text.pop_back();
  require<UserError>(count >= 0 && text.find_first_not_of("0123456789") == std::string::npos,
                     "{}: is not the lock of a run; rename it, or choose another folder with --run",
                     file.string());
  return text;
}

}  // namespace

RunLock::RunLock(const fs::path& folder) : file_(folder / "lock") {
  std::error_code error;
  fs::create_directories(folder, error);
  require<FileError>(!error, "cannot create the run folder {}: {}", folder.string(),
                     error.message());
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = opened(file_);
    try {
      const std::string owner = owner_in(descriptor_, file_);
      // Any other failure is that of a file system without locks.
      require<UserError>(::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK,
                         "{} is being trained by {}; wait for it or stop it", folder.string(),
                         owner.empty() ? "another process" : "process " + owner);
    } catch (...) {
      ::close(descriptor_);
      throw;
    }
  } while (!is_name_of(file_, descriptor_));
  const std::string process = fmt::format("{}\n", ::getpid());
  // The text is for people; the lock holds without it.
  if (::ftruncate(descriptor_, 0) < 0 ||
      ::pwrite(descriptor_, process.data(), process.size(), 0) < 0)
    return;
}

void RunLock::require_held() const {
  require<FileError>(is_name_of(file_, descriptor_),
                     "{}: was removed or replaced, and its folder may be another run's now; this "
                     "run has stopped and writes nothing more",
                     file_.string());
}

RunLock::~RunLock() {
  if (is_name_of(file_, descriptor_)) ::unlink(file_.c_str());
  ::close(descriptor_);
}

bool is_locked(const fs::path& folder) {
  const int descriptor =
      ::open((folder / "lock").c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return held;
}

}  // namespace qkv
