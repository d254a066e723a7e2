#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/shape.h"

namespace qkv {

/// Lets a table of strings be asked for a string_view.
struct StringHash {
  using is_transparent = void;
  // Not noexcept: libstdc++'s tables then keep the hash of each key, rather than compute it again
  // for all that they pass.
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

/// Which ids stand for no text.
enum class ReservedIds {
  padding_and_unknown,  ///< 0 and 1
  none                  ///< every text is made of listed tokens, and padding may have any id
};

/// Tokens and their ids. Id 0 is padding, id 1 the unknown token, which replaces all that are not
/// listed; without reserved ids both are text like the others.
class Vocabulary {
 public:
  static constexpr std::int32_t padding = 0;
  static constexpr std::int32_t unknown = 1;

  using Counts = std::map<std::string, Index, std::less<>>;

  /// Assigns ids to the tokens that occur at least `min_count` times, the most frequent first and
  /// equally frequent ones in byte order, after the tokens `known`, a list as `tokens` gives it.
  static Vocabulary build(Counts counts, Index min_count,
                          const std::vector<std::string>& known = {});

  /// Takes a list as `tokens` gives it. Throws FileError when it does not begin with "<pad>",
  /// "<unk>", where these ids are reserved, or names a token twice.
  explicit Vocabulary(std::vector<std::string> tokens,
                      ReservedIds reserved = ReservedIds::padding_and_unknown);

  /// `unknown` when the token is not listed, or is a text that spells "<pad>": no text is padding.
  std::int32_t id(std::string_view token) const;
  /// The id of a listed token.
  std::optional<std::int32_t> find(std::string_view token) const;
  bool is_unknown(std::int32_t id) const noexcept { return reserved_ > 0 && id == unknown; }
  /// The number of reserved ids, which come first.
  std::int32_t reserved() const noexcept { return reserved_; }
  const std::string& token(std::int32_t id) const {
    return tokens_.at(static_cast<std::size_t>(id));
  }
  /// Every token at its id.
  const std::vector<std::string>& tokens() const noexcept { return tokens_; }
  std::vector<std::string> tokens(std::span<const std::int32_t> ids) const;
  Index size() const noexcept { return std::ssize(tokens_); }

 private:
  std::vector<std::string> tokens_;
  std::int32_t reserved_;
  std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>> ids_;
};

}  // namespace qkv
