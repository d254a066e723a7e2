#pragma once

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/shape.h"

namespace qkv {

/// The labels of a training split in alphabetical order. Throws UserError naming the data unless
/// there are two.
inline std::vector<std::string> label_list(const std::set<std::string>& labels,
                                           std::string_view source) {
  require<UserError>(labels.size() >= 2, "{}: there is only the label {}; there must be two",
                     source, labels.empty() ? "" : *labels.begin());
  return {labels.begin(), labels.end()};
}

/// The index of a label; -1 when it is unknown. Those of an imported model have the order that it
/// gave them.
inline Index label_id(const std::vector<std::string>& labels, std::string_view label) {
  const auto found = std::ranges::find(labels, label);
  return found == labels.end() ? -1 : found - labels.begin();
}

/// How often each label occurs, the most frequent first, in a line: "2 labels: money 350, river
/// 350". With a warning where most of many occur once, as they do in a column that has no labels.
inline std::string summary_of(std::span<const std::string> labels, std::span<const Index> counts) {
  constexpr std::size_t many = 10;
  const Index examples = std::accumulate(counts.begin(), counts.end(), Index{0});
  if (labels.size() > many && 2 * std::ranges::count(counts, 1) > std::ssize(labels))
    return fmt::format(
        "{} examples, {} labels, most of them once: is the column of labels the right one? A first "
        "line that names the columns, or task.columns, tells which it is",
        examples, labels.size());
  std::vector<std::pair<Index, std::string>> by_count;
  for (std::size_t i = 0; i < labels.size(); ++i) by_count.emplace_back(counts[i], labels[i]);
  std::ranges::stable_sort(by_count, std::greater(), &std::pair<Index, std::string>::first);
  std::vector<std::string> shown;
  for (const auto& [count, label] : by_count)
    if (shown.size() < many) shown.push_back(fmt::format("{} {}", label, count));
  if (labels.size() > many) shown.emplace_back("...");
  return fmt::format("{} labels: {}", labels.size(), fmt::join(shown, ", "));
}

}  // namespace qkv
