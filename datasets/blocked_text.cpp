#include "datasets/blocked_text.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/error.h"
#include "core/input_file.h"
#include "core/open_file.h"
#include "datasets/text.h"
#include "datasets/text_file.h"

namespace qkv {
namespace {

constexpr std::size_t longest_block = 1024;
constexpr std::size_t bytes_at_once = 1 << 20;

bool continues_character(char c) {
  return (c & 0xC0) == 0x80;
}

/// Of text in which CRLF counts as one.
Index count_characters(std::string_view text) {
  Index count = 0;
  for (const char c : text) count += !continues_character(c);
  for (auto at = text.find('\r'); at != text.npos; at = text.find('\r', at + 1))
    count -= at + 1 < text.size() && text[at + 1] == '\n';
  return count;
}

/// The byte at which character `number` begins.
std::size_t offset_of(std::string_view text, Index number) {
  std::size_t offset = 0;
  for (; number > 0 && offset < text.size(); --number)
    offset +=
        text.substr(offset).starts_with("\r\n") ? 2 : first_character(text.substr(offset)).size();
  return offset;
}

/// The length of the first block of a text that is longer than a block.
std::size_t block_length(std::string_view text) {
  const std::string_view head = text.substr(0, longest_block);
  if (const auto line = head.rfind('\n'); line != head.npos) return line + 1;
  if (const auto space = head.rfind(' '); space != head.npos && space > 0) return space;
  std::size_t length = longest_block;
  while (length > 1 && continues_character(text[length])) --length;
  return length > 1 && text[length - 1] == '\r' ? length - 1 : length;
}

/// Throws UserError naming the line; `lines` came before the block.
void require_text_block(std::string_view block, const std::filesystem::path& file,
                        std::size_t lines) {
  if (is_utf8(block) && block.find('\0') == block.npos) return;
  while (!block.empty()) {
    const std::string_view line = block.substr(0, std::min(block.find('\n'), block.size() - 1) + 1);
    require_text(line, file, ++lines);
    block.remove_prefix(line.size());
  }
}

std::string contents_of_pipe(const std::filesystem::path& file) {
  std::ifstream stream = open_file(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

/// The bytes of a text: a file's, or in memory.
class BlockedText::Source {
 public:
  explicit Source(std::string text) : text_(std::move(text)) {}
  explicit Source(const std::filesystem::path& path) : path_(path) {
    require_readable_kind(path);
    if (std::error_code unknown; std::filesystem::is_regular_file(path, unknown))
      file_.emplace(path);
    else
      text_ = contents_of_pipe(path);
    require<UserError>(size() <= max_file_bytes, "{}: holds {} bytes; at most {} can be read",
                       path.string(), size(), max_file_bytes);
    require<UserError>(size() > 0, "{}: is empty", path.string());
  }

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return file_ ? file_->size() : text_.size(); }
  std::string read(std::uint64_t begin, std::uint64_t count) const {
    if (!file_) return text_.substr(begin, count);
    file_->require_unchanged();
    const auto bytes = file_->read(begin, count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::filesystem::path path_;
  std::optional<InputFile> file_;
  std::string text_;
};

BlockedText::BlockedText() : BlockedText(std::string()) {}

BlockedText::BlockedText(std::string text)
    : source_(std::make_shared<const Source>(std::move(text))) {
  ReadCallback silent;
  add_blocks(*source_, silent);
}

BlockedText::BlockedText(const std::filesystem::path& file, ReadCallback& callback)
    : source_(std::make_shared<const Source>(file)) {
  add_blocks(*source_, callback);
}

void BlockedText::add_blocks(const Source& source, ReadCallback& callback) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  end_ = source.size();
  std::size_t lines = 0;
  std::string buffer;
  for (std::uint64_t begin = 0; begin < end_;) {
    buffer = source.read(begin, bytes_at_once);
    std::string_view rest = buffer;
    const bool is_last = begin + rest.size() == end_;
    if (begin == 0 && rest.starts_with(byte_order_mark)) rest.remove_prefix(byte_order_mark.size());
    // A file has a block, even if it holds but a byte order mark.
    while (rest.size() > longest_block || (is_last && (!rest.empty() || blocks_.empty()))) {
      const std::string_view block =
          rest.size() > longest_block ? rest.substr(0, block_length(rest)) : rest;
      require_text_block(block, source.path(), lines);
      lines += static_cast<std::size_t>(std::ranges::count(block, '\n'));
      blocks_.push_back({begin + (buffer.size() - rest.size()), characters_});
      characters_ += count_characters(block);
      rest.remove_prefix(block.size());
    }
    begin += buffer.size() - rest.size();
    callback.on_reading("reading " + source.path().string(),
                        static_cast<double>(begin) / static_cast<double>(end_));
  }
  ends_with_cr_ = !source.path().empty() && lines == 0;
  lacks_line_end_ = !source.path().empty() && !buffer.ends_with('\n');
  if (lacks_line_end_ && !buffer.ends_with('\r')) ++characters_;
  blocks_.shrink_to_fit();
}

std::string BlockedText::name() const {
  return source_->path().string();
}

std::string BlockedText::bytes_of(std::size_t block) const {
  const std::uint64_t begin = blocks_[block].begin,
                      end = block + 1 < blocks_.size() ? blocks_[block + 1].begin : end_;
  return source_->read(begin, end - begin);
}

std::string BlockedText::block(Index i) const {
  std::string text = bytes_of(static_cast<std::size_t>(i));
  for (auto at = text.find("\r\n"); at != text.npos; at = text.find("\r\n", at)) text.erase(at, 1);
  if (i + 1 == blocks() && lacks_line_end_) {
    if (text.ends_with('\r')) text.pop_back();
    text += '\n';
  }
  if (ends_with_cr_) std::ranges::replace(text, '\r', '\n');
  return text;
}

BlockedText BlockedText::cut_off(Index count) {
  BlockedText end = *this;
  const Index first = characters_ - count;
  const auto after = std::ranges::upper_bound(blocks_, first, {}, &Block::first_character);
  end.blocks_.assign(after, blocks_.end());
  std::uint64_t at = end.blocks_.empty() ? end_ : end.blocks_.front().begin;
  if (after != blocks_.begin()) {
    const Block& cut = *(after - 1);
    const std::string bytes = bytes_of(static_cast<std::size_t>(after - 1 - blocks_.begin()));
    at = cut.begin + offset_of(bytes, first - cut.first_character);
    if (count > 0) end.blocks_.insert(end.blocks_.begin(), {at, first});
  }
  for (Block& block : end.blocks_) block.first_character -= first;
  end.characters_ = count;
  blocks_.erase(blocks_.begin() + (after - blocks_.begin()), blocks_.end());
  if (!blocks_.empty() && blocks_.back().begin == at) blocks_.pop_back();
  end_ = at;
  characters_ = first;
  lacks_line_end_ = lacks_line_end_ && count == 0;
  return end;
}

}  // namespace qkv
