#pragma once

#include <string>
#include <vector>

#include "inspect/report/run_data.h"

namespace qkv::report {

/// What model.js needs of a run besides the weights: {"options": {"model": {"width", ...}, "task":
/// {...}}, "cutting": {"kind", "lower_case"}, "vocabulary": {"tokens", "labels", "targets"},
/// "parameters": [{"path", "shape"}]}. The options are those of the config but for paths.
Json model_data(const LoadedModel& model);

/// The models of a page as far as it has room: "model" of each of `runs` gets "weights": {number of
/// a checkpoint: base64}, first of every run that of its best checkpoint, the smaller models first,
/// then of further checkpoints.
class ModelWeights {
 public:
  /// Adds the checkpoints of the next run, of which `chosen` is the best.
  void add(const std::vector<RunCheckpoint>& checkpoints, std::size_t chosen);
  /// Writes those that fit into `room` characters into the runs, in the order of `add`.
  void write(Json& runs, std::size_t room) const;

 private:
  struct Weights {
    std::size_t run, checkpoint;
    bool best;
    std::string text;
  };
  std::vector<Weights> all_;
  std::size_t runs_ = 0;
};

}  // namespace qkv::report
