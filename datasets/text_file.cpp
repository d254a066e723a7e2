#include "datasets/text_file.h"

#include <system_error>

#include "core/error.h"
#include "core/open_file.h"
#include "datasets/text.h"

namespace qkv {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

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

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  ReadCallback silent;
  std::vector<std::string> lines;
  for_each_line(path, silent,
                [&](std::size_t, std::string& line) { lines.push_back(std::move(line)); });
  return lines;
}

std::vector<NumberedLine> read_filled_lines(const std::filesystem::path& path) {
  std::vector<NumberedLine> filled;
  std::size_t number = 0;
  for (std::string& line : read_lines(path))
    if (++number; !words(line).empty()) filled.push_back({number, std::move(line)});
  require<UserError>(!filled.empty(), "{}: all of its lines are blank", path.string());
  return filled;
}

void require_short_tokens(std::string_view line, std::string_view place) {
  const std::size_t longest = longest_token(line);
  require<UserError>(longest <= max_token_bytes,
                     "{}: a word must have at most {} bytes, got {}; is this text?", place,
                     max_token_bytes, longest);
}

}  // namespace qkv
