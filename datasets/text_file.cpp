#include "datasets/text_file.h"

#include <algorithm>
#include <fstream>
#include <system_error>

#include "core/error.h"
#include "core/open_file.h"
#include "datasets/text.h"

namespace qkv {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// The most bytes that a data file may have.
constexpr std::uintmax_t max_file_bytes = std::uintmax_t{1} << 30;

/// Throws UserError naming the place when a line is not UTF-8 or contains a zero byte.
void require_text(std::string_view line, const std::filesystem::path& file, std::size_t number) {
  const bool is_utf16 = line.starts_with("\xFF\xFE") || line.starts_with("\xFE\xFF");
  require<UserError>(number > 1 || !is_utf16, "{}: is UTF-16; save the file as UTF-8",
                     file.string());
  require<UserError>(is_utf8(line), "{}:{}: is not valid UTF-8; save the file as UTF-8",
                     file.string(), number);
  require<UserError>(line.find('\0') == line.npos,
                     "{}:{}: contains a zero byte; is it UTF-16? Save the file as UTF-8",
                     file.string(), number);
}

/// The size of a file; 0 of a pipe.
std::uintmax_t size_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return 0;
  require<UserError>(size <= max_file_bytes, "{}: holds {} bytes; at most {} can be read",
                     path.string(), size, max_file_bytes);
  return size;
}

}  // namespace

void for_each_line(const std::filesystem::path& path, ReadCallback& callback,
                   const std::function<void(std::size_t number, std::string& line)>& use) {
  constexpr std::uintmax_t report_every = 1 << 18;
  std::ifstream file = open_file(path);
  const std::uintmax_t size = size_of(path);
  std::uintmax_t bytes = 0, reported = 0;
  std::size_t number = 0;
  const std::string what = "reading " + path.string();
  for (std::string line; std::getline(file, line);) {
    bytes += line.size() + 1;
    if (number == 0 && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
    if (line.ends_with('\r')) line.pop_back();
    // The lines of a file without LF end with CR.
    const char end = number == 0 && file.eof() ? '\r' : '\n';
    std::string_view rest = line;
    for (auto at = rest.find(end); at != rest.npos; at = rest.find(end)) {
      std::string part(rest.substr(0, at));
      require_text(part, path, ++number);
      use(number, part);
      rest.remove_prefix(at + 1);
    }
    line.erase(0, line.size() - rest.size());
    require_text(line, path, ++number);
    use(number, line);
    if (bytes < reported + report_every) continue;
    reported = bytes;
    if (size > 0) callback.on_reading(what, static_cast<double>(bytes) / static_cast<double>(size));
  }
  require<FileError>(!file.bad(), "{}: cannot be read to its end", path.string());
  require<UserError>(number > 0, "{}: is empty", path.string());
}

void require_short_tokens(std::string_view line, std::string_view place) {
  if (line.size() <= max_token_bytes) return;
  std::size_t longest = 0, length = 0;
  for_each_character(line, [&](std::string_view character) {
    const char32_t code = first_code_point(character).code;
    length = is_white(code) || is_mark(code) ? 0 : length + character.size();
    longest = std::max(longest, length);
  });
  require<UserError>(longest <= max_token_bytes,
                     "{}: a word must have at most {} bytes, got {}; is this text?", place,
                     max_token_bytes, longest);
}

}  // namespace qkv
