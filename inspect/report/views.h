#pragma once

#include <span>

#include "inspect/report/loaded_run.h"

namespace qkv::report {

/// Metadata of a run: {"name", "config", "parameters", "data", "stops": [{"step", "note"}]}.
Json summary_view(const LoadedRun& run);

/// The outcome of training: {"metrics", "test", "seconds", "best_step", "probes"}; "best_step" is
/// null for a run without validation. "probes" are the claims of the model's config: [{"name",
/// "expect", "sentences", "passes", "findings": [{"after", "measured", "holds"}]}], the first
/// finding without an intervention; for probes that cannot be asked of the model {"error"}.
Json outcome_view(const LoadedRun& run);

/// [{"text", "label", "tokens", "index"}]
Json texts_view(std::span<const LabelledText> texts);

/// Attention weights of sentences at every checkpoint, or as many as `budget` characters allow, the
/// last one always. {"stops": [index of a checkpoint], "sentences": [{"layers", "heads", "weights":
/// [base64 of a checkpoint]}]}; null for a model without attention.
Json attention_view(std::span<const RunCheckpoint> checkpoints,
                    std::span<const LabelledText> sentences, std::size_t budget);

/// The words that the texts are about, or the texts, before and after the model read them, in the
/// two principal components of the last checkpoint. {"before": {"share", "mean": base64 of float32
/// [D], "directions": the same of [2, D], "points": [[[x, y] of a word] of a checkpoint]}, "after":
/// ...}
Json embedding_view(std::span<const RunCheckpoint> checkpoints,
                    std::span<const LabelledText> texts);

/// Matrices of the chosen model as block averages of at most blocks x blocks signed bytes, and
/// those of the first checkpoint if that is another one. [{"path", "shape", "rows", "columns",
/// "largest", "values", "largest_before", "before"}]
Json weight_view(const LoadedRun& run, Index blocks);

}  // namespace qkv::report
