#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/parameter.h"
#include "layers/context.h"
#include "train/storage/checkpoint.h"

namespace qkv::tests {

/// Something that an outside implementation recomputes from its parameters and inputs.
struct ProofRow {
  std::string label;  ///< "Linear: with bias"; what stands before the colon is proved
  /// Float64 values by name, among them the tensors that go in: each is written, and so is the
  /// gradient by each.
  std::vector<NamedParameter> parameters;
  std::function<Tensor()> output;
  double lr = 0.001;  ///< of the ten steps
  /// Whether gradients may differ from numeric derivatives, which are then omitted.
  bool detaches = false;
};

/// The rows of the proof as one checkpoint, so that reading it proves the format too:
///
///     /vocabulary/<section>                             labels; row N is the N-th
///     /vocabulary/calls, called                         calls in C++ of rows, and their labels
///     /model/<section>/N/gradient_check                 worst error against central differences
///     /model/<section>/N/<dtype>/values/<parameter>     for float32 and float64
///     /model/<section>/N/<dtype>/weights                of the shape of the output
///     /model/<section>/N/<dtype>/output, lr
///     /model/<section>/N/<dtype>/gradients/<parameter>  of sum(weights output)
///     /model/<section>/N/<dtype>/trained/<parameter>    after ten steps of `row_optimizer`
class Proof {
 public:
  void add(const std::string& section, const ProofRow& row);
  /// Rows of another kind write tensors of their own below the path that this returns.
  std::string add(const std::string& section, const std::string& label);
  /// The call, in C++, of a row with this label.
  void describe(const std::string& label, const std::string& call) {
    file_.vocabulary["called"].push_back(label);
    file_.vocabulary["calls"].push_back(call);
  }
  void write(const std::string& path, const Tensor& value) { file_.model[path] = value.detach(); }

  const Checkpoint& file() const { return file_; }

 private:
  Checkpoint file_;
};

using ModuleCall = std::function<Tensor(const std::vector<Tensor>&, Context&)>;
/// A row for a module called in evaluation: the tensors that go in, of these shapes, are named
/// "inputs.0", "inputs.1", ..., and the parameters' names follow "parameters.". Every number is
/// drawn anew, so that biases and gains are not 0 and 1.
void prove_module(Proof& proof, const std::string& section, const std::string& label,
                  Module& module, const std::vector<Shape>& inputs, const ModuleCall& call);

// The sections of the proof, a file for each.
void prove_ops(Proof& proof);
/// The rows that layers have for the fuzzer; `prove_layers` has those beside them.
void prove_layer_rows(Proof& proof);
void prove_layers(Proof& proof);
void prove_models(Proof& proof);
void prove_optimizers(Proof& proof);

}  // namespace qkv::tests
