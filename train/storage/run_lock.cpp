#include "train/storage/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "core/error.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

/// Whether `file` still is the name of an open file, which its last owner may have removed.
bool is_name_of(const fs::path& file, int descriptor) {
  struct stat named = {}, opened = {};
  return ::stat(file.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

/// "process 1234"
std::string owner_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string process;
  stream >> process;
  return process.empty() ? "another process" : "process " + process;
}

}  // namespace

RunLock::RunLock(const fs::path& folder) : file_(folder / "lock") {
  std::error_code error;
  fs::create_directories(folder, error);
  require<FileError>(!error, "cannot create the run folder {}: {}", folder.string(),
                     error.message());
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    require<FileError>(descriptor_ >= 0, "{}: cannot open: {}", file_.string(),
                       std::generic_category().message(errno));
    // Any other failure is that of a file system without locks.
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) continue;
    ::close(descriptor_);
    throw UserError(fmt::format("{} is being trained by {}; wait for it or stop it",
                                folder.string(), owner_of(file_)));
  } while (!is_name_of(file_, descriptor_));
  const std::string process = fmt::format("{}\n", ::getpid());
  // The text is for people; the lock holds without it.
  if (::ftruncate(descriptor_, 0) < 0 || ::write(descriptor_, process.data(), process.size()) < 0)
    return;
}

RunLock::~RunLock() {
  ::unlink(file_.c_str());
  ::close(descriptor_);
}

}  // namespace qkv
