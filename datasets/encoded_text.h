#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "datasets/blocked_text.h"
#include "datasets/tokenizer.h"

namespace qkv {

/// The ids of a text. Those of a short text are kept; a longer one is encoded block by block
/// whenever ids are asked for, and memory holds 24 bytes for each KiB, whatever the vocabulary.
class EncodedText {
 public:
  EncodedText() = default;
  /// Reads the text once. Keeps its ids if it has at most `longest_kept` characters.
  EncodedText(BlockedText text, std::shared_ptr<const Tokenizer> tokenizer, ReadCallback& callback,
              Index longest_kept = Index{1} << 23);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  Index size() const { return size_; }
  Index unknown() const { return unknown_; }  ///< ids of the unknown token
  /// Ids `begin` up to `end`, which is at most `size`. Throws FileError as `BlockedText::block`.
  std::vector<std::int32_t> ids(Index begin, Index end) const;
  /// All ids, in parts.
  void for_each_part(const std::function<void(std::span<const std::int32_t>)>& use) const;

 private:
  BlockedText text_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<Index> begins_;  ///< of each block, in ids
  Index size_ = 0, unknown_ = 0;
  std::vector<std::int32_t> kept_;  ///< all ids, or none
};

}  // namespace qkv
