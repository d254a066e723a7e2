#pragma once

#include <string>
#include <vector>

#include "inspect/components.h"
#include "inspect/explain.h"

namespace qkv {

/// Two texts with as many tokens, to which the model gives different answers.
struct PatchPair {
  Sentence clean, corrupt;
  Index clean_index, corrupt_index;  ///< the words that are asked about
};

/// An activation of the corrupt text that is replaced by the clean one's, and how much of the logit
/// difference that recovers: 0 where it stays the corrupt text's, 1 where it becomes the clean's.
struct PatchedRow {
  std::string label;  ///< "before layer 0", "layer 1", "layer 1, head 0"
  Index layer;
  Index head;             ///< -1: none
  Activation activation;  ///< of which the columns where `mask` is 1 are replaced
  Tensor mask;
  std::vector<double> positions = {};  ///< replaced at one position alone
  double all = 0;                      ///< at all positions
};

/// Activation patching (Meng et al. 2022, "Locating and Editing Factual Associations in GPT",
/// causal tracing; Heimersheim & Nanda 2024): the corrupt text runs with one activation of the
/// clean text at a time. What is measured is the logit of the model's answer to the clean text less
/// that of its answer to the corrupt one.
struct Patching {
  double clean = 0, corrupt = 0;  ///< logit differences; means over pairs
  Index pairs = 0;
  std::vector<PatchedRow> residual, attention, feed_forward, heads;
};

/// Over all pairs: means of logit differences, of which the recovered fraction is taken at the end.
/// Throws UserError when the model has no single stack of blocks or no answers to choose from, and
/// for pairs of other lengths or with equal answers.
Patching patched(const LoadedModel& trained, const std::vector<PatchPair>& pairs);

}  // namespace qkv
