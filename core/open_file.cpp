#include "core/open_file.h"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "core/error.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

/// Whether a path leads to a file, or to the pipe that a shell passes for `<(command)`, which has
/// no name in the file system. Opening a named pipe may wait for ever, and a device may have no
/// end.
bool has_an_end(const fs::path& path, fs::file_status status) {
  std::error_code error;
  if (!fs::is_fifo(status)) return fs::is_regular_file(status);
  return fs::canonical(path, error).empty();
}

}  // namespace

void require_readable_kind(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return;
  require<UserError>(!fs::is_directory(status), "{}: is a folder, not a file", path.string());
  require<UserError>(has_an_end(path, status),
                     "{}: is a named pipe or a device; write its contents to a file first",
                     path.string());
}

std::ifstream open_file(const fs::path& path) {
  require_readable_kind(path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  require<UserError>(file.is_open(), "{}: cannot be read: {}", path.string(),
                     std::generic_category().message(errno));
  return file;
}

}  // namespace qkv
