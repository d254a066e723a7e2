#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/run/run.h"

namespace qkv {

/// The model after an intervention: the same weights without positions, with equal attention to all
/// words, or with the elements of each W_q in random order, the same at every call. Swapping words
/// leaves it as it is. Throws UserError when there are no queries to shuffle.
LoadedModel intervened(const LoadedModel& model, Intervention intervention);

/// `text` with each occurrence of two words exchanged.
std::string swapped(std::string_view text, std::string_view a, std::string_view b);

/// A value that a module computes under a name in each forward pass, as a `Hook` gets it.
struct Activation {
  const Module* module;
  std::string_view name;

  bool operator==(const Activation&) const = default;
};

/// An intervention on one activation [B, T, D]: `value` stands in its place where `mask` is 1. Both
/// broadcast to its shape.
struct Replacement {
  Activation activation;
  Tensor mask, value;
};

/// Carries out the replacements in every forward pass that it accompanies.
Hook hook_of(std::vector<Replacement> replacements);

/// The scores that the model gives about a word after such replacements (`Task::scores`).
Scores scores_after(const LoadedModel& model, const Sentence& sentence, Index index,
                    std::vector<Replacement> replacements);

/// A recorded activation of a sentence alone, [T, D], float64.
Tensor recorded_vectors(const Recorder& recorder, const Activation& activation);

/// 1 in [begin, end), else 0: [size].
Tensor range_mask(Index begin, Index end, Index size);

}  // namespace qkv
