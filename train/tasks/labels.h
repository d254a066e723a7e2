#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/shape.h"
#include "datasets/corpus.h"

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

/// `label_id` of each of the numbered labels.
inline std::vector<Index> label_ids(const std::vector<std::string>& labels,
                                    const Numbering& numbered) {
  std::unordered_map<std::string_view, Index> known;
  for (const std::string& label : labels) known.emplace(label, std::ssize(known));
  std::vector<Index> ids;
  for (std::int32_t number = 0; number < numbered.size(); ++number) {
    const auto found = known.find(numbered.text(number));
    ids.push_back(found == known.end() ? -1 : found->second);
  }
  return ids;
}

}  // namespace qkv
