#pragma once

#include <string>
#include <string_view>

#include "train/run.h"

namespace qkv {

/// The model after an intervention: the same weights without positions, with equal attention to all
/// words, or with the elements of each W_q in random order, the same at every call. Swapping words
/// leaves it as it is. Throws UserError when there are no queries to shuffle.
LoadedModel intervened(const LoadedModel& model, Intervention intervention);

/// `text` with each occurrence of two words exchanged.
std::string swapped(std::string_view text, std::string_view a, std::string_view b);

}  // namespace qkv
