#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "inspect/report/loaded_run.h"

namespace qkv::report {

/// A model in the page, without its weights: {"options": {"model": {"width", ...},
/// "task": {...}}, "tokenizer": kind, "vocabulary": {"tokens", "labels", ...}, "parameters":
/// [{"path", "shape"}]}. The options are those of the config but for paths.
Json model_view(const LoadedModel& model);

/// A checkpoint in the page: its bytes are the codes of all parameters one after the other, in
/// planes of bytes of which the low ones come first. A code of 32 bits is a float32. One of fewer
/// is the change since initialisation, which the page computes: it lies evenly between -largest (0)
/// and largest of its parameter, and these stand before the planes as float32.
struct CodedWeights {
  std::size_t run, checkpoint;
  int bits;
  std::string bytes;
};

/// The models of a page as far as it has room: the best checkpoints, the main run's before the
/// others', then further ones of the main run, evenly over its training, then those of the others.
/// The others are float32 if all fit, else they have 16 or 12 bits; the best ones have the most
/// bits with which all of them fit, 8 at least.
class ModelWeights {
 public:
  /// Adds the checkpoints of run `index` that are not too large.
  void add(std::size_t index, const LoadedRun& run);
  /// The checkpoints that fit into `room` characters, compressed.
  std::vector<CodedWeights> choose(std::size_t main, std::size_t room) const;

 private:
  struct Weights {
    std::size_t run, checkpoint;
    int rank;  ///< among the checkpoints of a run; 0 for the best
    std::vector<Index> sizes;
    std::vector<float> values;
    std::shared_ptr<const std::vector<float>> initial;
  };
  using Order = std::vector<const Weights*>;

  static CodedWeights coded(const Weights& weights, int bits);
  static int fitting_bits(const Order& all, std::span<const int> choices, std::size_t room);

  std::vector<Weights> all_;
};

}  // namespace qkv::report
