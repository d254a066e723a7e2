#pragma once

#include <vector>

#include "cli/document.h"
#include "inspect/explain.h"

namespace qkv::commands {

/// Adds the steps of a forward pass for a word, with formulas and values, for people: every layer
/// and head, or with a number from 0 that one.
void add_steps(Document& document, const Explanation& explanation, Index layer, Index head);

/// The choices with the highest logits, at most 10, the highest first.
std::vector<std::size_t> likeliest(const std::vector<double>& logits);

}  // namespace qkv::commands
