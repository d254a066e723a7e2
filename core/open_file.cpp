#include "core/open_file.h"

#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace qkv {

std::ifstream open_file(const std::filesystem::path& path) {
  std::error_code error;
  require<UserError>(!std::filesystem::is_directory(path, error), "{}: is a folder, not a file",
                     path.string());
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  require<UserError>(file.is_open(), "{}: cannot be read: {}", path.string(),
                     std::generic_category().message(errno));
  return file;
}

}  // namespace qkv
