#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/shape.h"

namespace qkv {

/// Lets a table of strings be asked for a string_view.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>()(text);
  }
};

/// Tokens and their ids. Id 0 is padding, id 1 the unknown token, which replaces all that are not
/// listed.
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
  /// "<unk>" or names a token twice.
  explicit Vocabulary(std::vector<std::string> tokens);

  /// `unknown` when the token is not listed, or is a text that spells "<pad>": no text is padding.
  std::int32_t id(std::string_view token) const;
  const std::string& token(std::int32_t id) const {
    return tokens_.at(static_cast<std::size_t>(id));
  }
  /// Every token at its id.
  const std::vector<std::string>& tokens() const noexcept { return tokens_; }
  Index size() const noexcept { return std::ssize(tokens_); }

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>> ids_;
};

}  // namespace qkv
