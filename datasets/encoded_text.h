#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "datasets/corpus.h"
#include "datasets/read_callback.h"
#include "datasets/tokenizer.h"

namespace qkv {

/// A text in blocks of at most 1 KiB, which end after a line, else before a space, else after a
/// character, so that threads can work on them.
class BlockedText {
 public:
  explicit BlockedText(std::string text = "", std::string name = "");
  /// The lines of a file, each with LF behind it. Throws as `for_each_line`.
  BlockedText(const std::filesystem::path& file, ReadCallback& callback);

  const std::string& name() const noexcept { return name_; }  ///< of the file; empty in memory
  Index blocks() const noexcept { return std::ssize(ends_); }
  Index characters() const;
  std::string_view block(Index i) const;
  BlockedText& operator+=(const BlockedText& other);
  /// Removes the last `count` characters and returns them as a text.
  BlockedText cut_off(Index count);
  /// How often each piece occurs.
  Vocabulary::Counts counts(const Cutting& cutting, ReadCallback& callback) const;

 private:
  std::string text_, name_;
  std::vector<std::size_t> ends_;  ///< of each block, in bytes
};

/// The ids of a text, which take a byte or two each (`IdLists`).
class EncodedText {
 public:
  EncodedText() = default;
  EncodedText(const BlockedText& text, const Tokenizer& tokenizer, ReadCallback& callback);

  Index size() const noexcept { return size_; }
  Index unknown() const noexcept { return unknown_; }  ///< ids of the unknown token
  /// Ids `begin` up to `end`, which is at most `size`.
  std::vector<std::int32_t> ids(Index begin, Index end) const;

 private:
  IdLists lists_;  ///< of equal lengths, but for the last
  Index size_ = 0, unknown_ = 0;
};

}  // namespace qkv
