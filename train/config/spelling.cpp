#include "train/config/spelling.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace qkv {
namespace {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal
/// string alignment; Damerau 1964).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last.back();
}

/// Whether the letters of `brief` occur in `word` in their order.
bool abbreviates(std::string_view brief, std::string_view word) {
  if (brief.size() < 2) return false;
  for (char letter : brief) {
    const auto at = word.find(letter);
    if (at == word.npos) return false;
    word.remove_prefix(at + 1);
  }
  return true;
}

bool near(std::string_view unknown, std::string_view name, std::size_t distance) {
  const std::size_t dot = unknown.rfind('.') + 1, other_dot = name.rfind('.') + 1;
  const std::string_view leaf = unknown.substr(dot), other = name.substr(other_dot);
  const std::size_t longest = std::max(leaf.size(), other.size());
  if (distance <= std::max<std::size_t>(1, longest / 3) || leaf == other) return true;
  return unknown.substr(0, dot) == name.substr(0, other_dot) &&
         (abbreviates(leaf, other) || abbreviates(other, leaf));
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view unknown,
                                        std::span<const std::string> names) {
  std::optional<std::string> nearest;
  std::size_t least = 0;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(unknown, name);
    if (!near(unknown, name, distance) || (nearest && distance >= least)) continue;
    nearest = name;
    least = distance;
  }
  return nearest;
}

}  // namespace qkv
