#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/shape.h"
#include "datasets/read_callback.h"

namespace qkv {

/// A text of any length in blocks of at most 1 KiB, which end after a line, else before a space,
/// else after a character. A file is read block by block when they are asked for: memory holds 16
/// bytes a block.
class BlockedText {
 public:
  BlockedText();  ///< empty
  explicit BlockedText(std::string text);
  /// Reads a UTF-8 file once. Its text is without byte order mark, has LF for CRLF, where there is
  /// no LF for CR, and ends with LF. Throws as `for_each_line`.
  BlockedText(const std::filesystem::path& file, ReadCallback& callback);

  std::string name() const;  ///< of the file; empty in memory
  Index blocks() const { return std::ssize(blocks_); }
  Index characters() const { return characters_; }
  /// Threads may ask at the same time. Throws FileError when the file was written to since.
  std::string block(Index i) const;
  /// Removes the last `count` characters and returns them as a text.
  BlockedText cut_off(Index count);

 private:
  class Source;
  struct Block {
    std::uint64_t begin;    ///< in bytes of the source
    Index first_character;  ///< number of characters before it
  };

  void add_blocks(const Source& source, ReadCallback& callback);
  std::string bytes_of(std::size_t block) const;

  std::shared_ptr<const Source> source_;
  std::vector<Block> blocks_;
  std::uint64_t end_ = 0;
  Index characters_ = 0;
  bool lacks_line_end_ = false;  ///< which is added
  bool ends_with_cr_ = false;    ///< every line, rather than with LF
};

}  // namespace qkv
