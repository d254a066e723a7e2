#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/autograd.h"
#include "core/parameter.h"
#include "optim/options.h"

namespace qkv {

/// Changes parameters by their gradients.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Update number `step`, counted from 0, at the options' learning rate.
  void step(std::span<const NamedParameter> parameters, const Gradients& gradients,
            std::int64_t step) {
    this->step(parameters, gradients, options_.lr, step);
  }
  /// The same at another rate, as a schedule has it. Throws ValueError when there are gradients of
  /// parameters that are not listed and, with `require_gradients`, naming every listed parameter
  /// that has none.
  void step(std::span<const NamedParameter> parameters, const Gradients& gradients,
            double learning_rate, std::int64_t step);

  /// What the next update depends on, such as "first_moment.encoder.norm.weight"; checkpoints keep
  /// it.
  const std::map<std::string, Tensor>& state() const { return state_; }
  /// Throws ValueError when a name or shape does not belong to these parameters.
  void load_state(std::span<const NamedParameter> parameters, std::map<std::string, Tensor> state);

 protected:
  explicit Optimizer(const OptimizerOptions& options) : options_(options) {}

  /// The names of the values kept for each parameter, of its shape and starting at 0.
  virtual std::span<const std::string> slots() const = 0;
  /// Numbers [begin, end) of a parameter, and what goes with them.
  struct Section {
    Parameter& parameter;
    const Tensor& gradient;
    std::span<Tensor* const> slots;
    double weight_decay;
    Index begin, end;
  };
  /// Changes these numbers; other threads may change others.
  virtual void update(const Section& section, double learning_rate, std::int64_t step) const = 0;

  OptimizerOptions options_;

 private:
  /// What belongs to a parameter, found once.
  struct Entry {
    NamedParameter of;
    std::vector<Tensor*> slots;
    double weight_decay;
  };
  const Entry& entry_of(const NamedParameter& entry, std::size_t i);

  std::map<std::string, Tensor> state_;
  std::vector<Entry> entries_;  ///< in the order of the parameters
};

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

/// Whether weight decay applies to a parameter: to weights that multiply their input, which have
/// two axes or more. Biases, gains of norms and other vectors are spared, and so are tables of
/// embeddings, of which a step sees a few rows only and decay would shrink the others: parameters
/// with "embed" or "position" in their path.
bool decays(const NamedParameter& parameter);

/// Scales the gradients so that their joint norm is at most `limit` and returns the norm before
/// (Pascanu et al. 2013, "On the difficulty of training recurrent neural networks"); a limit of 0
/// changes nothing. The factor is limit / norm, where PyTorch adds 1e-6 to the norm.
double clip_norm(Gradients& gradients, double limit);

/// Moves every number of every gradient to the nearest in [-limit, limit]; a limit of 0 changes
/// nothing.
void clip_value(Gradients& gradients, double limit);

/// The learning rate of update `step` of `steps`: a pure function, so that a resume needs no state.
/// While step < warmup it rises, lr (step + 1) / warmup. After it, with p = (step - warmup) /
/// (steps
/// - warmup):
///
///     constant      lr
///     linear        lr (floor + (1 - floor) (1 - p))
///     cosine        lr (floor + (1 - floor) (1 + cos(pi p)) / 2)  (Loshchilov & Hutter 2017,
///     "SGDR") inverse_sqrt  lr sqrt(max(warmup, 1) / (step + 1))  (Vaswani et al. 2017, 5.3: their
///     rate is
///                   this one with lr = 1 / sqrt(width warmup))
///     one_cycle     half a cosine from lr / 25 up to lr at the last step of the warm-up, half a
///                   cosine down to lr floor at the last step (Smith & Topin 2018,
///                   "Super-Convergence", in the form of PyTorch's OneCycleLR)
double learning_rate(const ScheduleOptions& schedule, double lr, std::int64_t step,
                     std::int64_t steps);

}  // namespace qkv
