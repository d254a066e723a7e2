#include "cli/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "core/error.h"

namespace qkv {

TemporaryFolder::TemporaryFolder() {
  std::string name = std::filesystem::temp_directory_path() / "qkv-XXXXXX";
  require<FileError>(mkdtemp(name.data()) != nullptr,
                     "cannot create the temporary folder {}: {}; name another place with TMPDIR",
                     name, std::generic_category().message(errno));
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace qkv
