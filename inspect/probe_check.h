#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/run/run.h"

namespace qkv {

/// The measurement of a probe's claim.
struct Finding {
  std::string measured;  ///< "0.1234", "money, river", "animal (layer 0, head 2)"
  bool holds;
  std::optional<double> value = {};  ///< what was measured, where it is a number
};

/// A probe on a model as trained, and after each intervention that should break it.
struct ProbeResult {
  Probe probe;
  Finding trained;
  std::vector<Finding> broken;  ///< in the order of the probe's `broken_by`

  /// Whether the claim holds, and holds no longer after any of its interventions.
  bool passes() const;
};

/// The positions of a probe's word in a sentence.
std::vector<Index> positions_of_word(const Task& task, const Probe& probe,
                                     const Sentence& sentence);

/// Checks each probe of the model's config.
///
/// Cosines are those between all occurrences of the word in the sentences, taken in pairs, of which
/// the worst counts. `label` is compared with all of the model's predictions for the sentences, in
/// order. `attends_to` holds when one and the same head gives the named word the largest of the
/// word's weights in each sentence.
///
/// Throws UserError naming the probe when it cannot be asked of this model.
std::vector<ProbeResult> check_probes(const LoadedModel& model);

/// Takes those probes out of the model's config that are about other data than the model's: they
/// cannot be asked of it, or have words, labels or outputs that it does not know. Returns a line
/// about each.
std::vector<std::string> leave_out_probes(LoadedModel& model);

}  // namespace qkv
