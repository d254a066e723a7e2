// The calls of the system behind <filesystem>, of which libc++ for wasm has the paths alone. Files
// lie in a table in memory (inspect/report/module.js).
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace {

void tell(std::error_code* error, int code) {
  if (error) *error = std::error_code(code, std::generic_category());
}

std::filesystem::file_type type_of(const struct stat& status) {
  return S_ISREG(status.st_mode)   ? std::filesystem::file_type::regular
         : S_ISDIR(status.st_mode) ? std::filesystem::file_type::directory
                                   : std::filesystem::file_type::unknown;
}

}  // namespace

_LIBCPP_BEGIN_NAMESPACE_FILESYSTEM
file_status __status(const path& p, error_code* error) {
  struct stat status = {};
  const int code = ::stat(p.c_str(), &status) == 0 ? 0 : errno;
  tell(error, code);
  if (code != 0)
    return file_status(code == ENOENT || code == ENOTDIR ? file_type::not_found : file_type::none);
  return file_status(type_of(status));
}
uintmax_t __file_size(const path& p, error_code* error) {
  struct stat status = {};
  const int code = ::stat(p.c_str(), &status) == 0 ? 0 : errno;
  tell(error, code);
  return code == 0 ? static_cast<uintmax_t>(status.st_size) : static_cast<uintmax_t>(-1);
}
path __canonical(const path& p, error_code* error) {
  tell(error, 0);
  return p.lexically_normal();
}
path __current_path(error_code* error) {
  tell(error, 0);
  return "/";
}
path __absolute(const path& p, error_code* error) {
  tell(error, 0);
  return p.is_absolute() ? p : path("/") / p;
}
_LIBCPP_END_NAMESPACE_FILESYSTEM

_LIBCPP_BEGIN_NAMESPACE_STD
template class basic_ifstream<char>;
template class basic_ofstream<char>;
template class basic_filebuf<char>;
_LIBCPP_END_NAMESPACE_STD
