#include "datasets/text_file.h"

#include <system_error>

#include "core/error.h"
#include "core/open_file.h"
#include "datasets/text.h"

namespace qkv {
namespace {

constexpr std::uintmax_t max_bytes = std::uintmax_t{1} << 30;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

std::ifstream opened(const std::filesystem::path& path) {
  std::ifstream file = open_file(path);
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  require<UserError>(error || size <= max_bytes, "{}: holds {} bytes; at most {} can be read",
                     path.string(), size, max_bytes);
  return file;
}

}  // namespace

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::ifstream file = opened(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (lines.empty() && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
    if (line.ends_with('\r')) line.pop_back();
    require<UserError>(is_utf8(line), "{}:{}: is not valid UTF-8; save the file as UTF-8",
                       path.string(), lines.size() + 1);
    require<UserError>(line.find('\0') == line.npos, "{}:{}: contains a zero byte; is this text?",
                       path.string(), lines.size() + 1);
    lines.push_back(std::move(line));
  }
  require<FileError>(!file.bad(), "{}: cannot be read to its end", path.string());
  require<UserError>(!lines.empty(), "{}: is empty", path.string());
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

std::string read_text(const std::filesystem::path& path) {
  std::string text;
  for (const std::string& line : read_lines(path)) text += line + '\n';
  return text;
}

}  // namespace qkv
