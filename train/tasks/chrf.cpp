#include "train/tasks/chrf.h"

#include <algorithm>
#include <map>
#include <string>

#include "datasets/text.h"
#include "datasets/unicode.h"

namespace qkv {
namespace {

std::map<std::string, Index> n_grams(const std::vector<std::string>& characters, std::size_t n) {
  std::map<std::string, Index> counts;
  for (std::size_t i = 0; i + n <= characters.size(); ++i) {
    std::string gram;
    for (std::size_t j = i; j < i + n; ++j) gram += characters[j];
    ++counts[gram];
  }
  return counts;
}

/// White space as Python's str.split has it: the separators of ASCII are among it.
bool is_python_space(char32_t code) {
  return is_space(code) || (code >= 0x1C && code <= 0x1F);
}

std::vector<std::string> without_spaces(std::string_view text) {
  std::vector<std::string> kept;
  for_each_character(text, [&](std::string_view character) {
    if (!is_python_space(first_code_point(character).code)) kept.emplace_back(character);
  });
  return kept;
}

}  // namespace

void ChrF::add(std::string_view output, std::string_view reference) {
  const auto ours = without_spaces(output), theirs = without_spaces(reference);
  for (std::size_t n = 1; n <= longest; ++n) {
    Counts& counts = counts_[n - 1];
    const auto expected = n_grams(theirs, n);
    if (expected.empty()) continue;
    for (const auto& [gram, count] : n_grams(ours, n)) {
      counts.output += count;
      const auto found = expected.find(gram);
      if (found != expected.end()) counts.common += std::min(count, found->second);
    }
    for (const auto& [gram, count] : expected) counts.reference += count;
  }
}

double ChrF::value() const {
  double precision = 0, recall = 0, orders = 0;
  for (const Counts& counts : counts_) {
    if (counts.output == 0 || counts.reference == 0) continue;
    const auto common = static_cast<double>(counts.common);
    precision += common / static_cast<double>(counts.output);
    recall += common / static_cast<double>(counts.reference);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  constexpr double beta_squared = 4;
  return (1 + beta_squared) * precision * recall / (beta_squared * precision + recall) / orders;
}

}  // namespace qkv
