#include "datasets/vocabulary.h"

#include <algorithm>

#include "core/error.h"

namespace qkv {
namespace {

const std::vector<std::string> reserved_tokens = {"<pad>", "<unk>"};

}  // namespace

Vocabulary Vocabulary::build(Counts counts, Index min_count,
                             const std::vector<std::string>& known) {
  std::vector<std::string> tokens = known.empty() ? reserved_tokens : known;
  for (const std::string& token : tokens) counts.erase(token);
  std::erase_if(counts, [&](const auto& entry) { return entry.second < min_count; });
  std::vector<std::pair<std::string, Index>> ordered(counts.begin(), counts.end());
  std::ranges::stable_sort(ordered, std::greater(), &std::pair<std::string, Index>::second);
  for (auto& [token, count] : ordered) tokens.push_back(std::move(token));
  return Vocabulary(std::move(tokens));
}

Vocabulary::Vocabulary(std::vector<std::string> tokens, ReservedIds reserved)
    : tokens_(std::move(tokens)),
      reserved_(reserved == ReservedIds::none ? 0
                                              : static_cast<std::int32_t>(reserved_tokens.size())) {
  require<FileError>(
      std::ssize(tokens_) >= reserved_ &&
          std::equal(reserved_tokens.begin(), reserved_tokens.begin() + reserved_, tokens_.begin()),
      "a vocabulary must begin with {} and {}", reserved_tokens[0], reserved_tokens[1]);
  for (const std::string& token : tokens_) {
    const bool is_new = ids_.emplace(token, static_cast<std::int32_t>(ids_.size())).second;
    require<FileError>(is_new, "a vocabulary must not name \"{}\" twice", token);
  }
  if (reserved_ > 0) ids_.at(reserved_tokens[padding]) = unknown;
}

std::vector<std::string> Vocabulary::tokens(std::span<const std::int32_t> ids) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) tokens.push_back(token(id));
  return tokens;
}

std::int32_t Vocabulary::id(std::string_view token) const {
  return find(token).value_or(unknown);
}

std::optional<std::int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace qkv
