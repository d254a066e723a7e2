#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "datasets/vocabulary.h"

/// Byte-level byte-pair encoding as GPT-2 has it (Radford et al. 2019, 2.2).
namespace qkv {

/// A merge that does not fit the vocabulary or the merges before it.
class MergeError : public FileError {
 public:
  MergeError(const std::string& what, std::size_t merge) : FileError(what), merge_(merge) {}
  /// Its place in the list.
  std::size_t merge() const noexcept { return merge_; }

 private:
  std::size_t merge_;
};

/// The token that replaces two adjacent ones; the pair of the lowest rank is merged first.
struct Merge {
  std::int32_t rank, id;
};
using FindMerge = std::function<std::optional<Merge>(std::int32_t first, std::int32_t second)>;
/// Adds the tokens `symbols` to `ids`, of which the adjacent pair with the lowest rank is merged,
/// from left to right, until there is none. Takes time n log n.
void append_merged(std::span<const std::int32_t> symbols, const FindMerge& find,
                   std::vector<std::int32_t>& ids);

/// Merges of pairs of tokens, the first ones first.
class ByteMerges {
 public:
  /// `merges` are two tokens each, with a space between them. Throws FileError unless the
  /// vocabulary has every byte, MergeError unless it has every merged token, each part is a byte or
  /// comes from an earlier merge, and no two merges give the same token; then the order of merging
  /// is unambiguous.
  ByteMerges(std::vector<std::string> merges, const Vocabulary& vocabulary);

  const std::vector<std::string>& texts() const noexcept { return texts_; }
  /// Adds the ids of a piece: of its bytes, of which pairs are merged in the order of the merges.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

 private:
  using Pair = std::uint64_t;  ///< both ids, the first above the second
  static Pair pair_of(std::int32_t first, std::int32_t second) {
    return static_cast<Pair>(first) << 32 | static_cast<Pair>(second);
  }

  std::vector<std::string> texts_;
  std::vector<std::int32_t> byte_ids_;
  std::unordered_map<Pair, Merge> merges_;
};

}  // namespace qkv
