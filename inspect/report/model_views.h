#pragma once

#include <span>

#include "inspect/labelled_text.h"
#include "inspect/report/run_data.h"

namespace qkv::report {

/// Attention weights of sentences at every checkpoint, as far as `budget` characters allow: longer
/// sentences with 8 instead of 16 bits, then fewer checkpoints, never fewer than the last.
/// {"stops": [index of a checkpoint], "sentences": [{"layers", "heads", "bits", "weights": [base64
/// of a checkpoint]}]}; null for a model without attention.
Json attention_view(std::vector<RunCheckpoint>& checkpoints,
                    std::span<const LabelledText> sentences, std::size_t budget);

/// The words that the texts are about, or the texts, before and after the model read them, in the
/// two principal components of the last checkpoint. {"before": {"share", "points": [[[x, y] of a
/// word] of a checkpoint]}, "after": ...}
Json embedding_view(std::vector<RunCheckpoint>& checkpoints, std::span<const LabelledText> texts);

/// Matrices of the model as block averages of at most 64 x 64 signed bytes, and before
/// training. [{"path", "shape", "rows", "columns", "largest", "values", "largest_before",
/// "before"}]
Json weight_view(LoadedModel& model, LoadedModel& before);

}  // namespace qkv::report
