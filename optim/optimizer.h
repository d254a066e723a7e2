#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/autograd.h"
#include "core/parameter.h"
#include "optim/options.h"

namespace qkv {

/// Changes parameters by their gradients.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Update number `step`, counted from 0. Throws ValueError naming every listed parameter that has
  /// no gradient, and when there are gradients of parameters that are not listed.
  void step(std::span<const NamedParameter> parameters, const Gradients& gradients,
            double learning_rate, std::int64_t step);

  /// What the next update depends on, such as "first_moment.encoder.norm.weight"; checkpoints keep
  /// it.
  const std::map<std::string, Tensor>& state() const { return state_; }
  /// Throws ValueError when a name or shape does not belong to these parameters.
  void load_state(std::span<const NamedParameter> parameters, std::map<std::string, Tensor> state);

 protected:
  /// The names of the values kept for each parameter, of its shape and starting at 0.
  virtual std::span<const std::string> slots() const = 0;
  virtual void update(Parameter& parameter, const Tensor& gradient, std::span<Tensor* const> slots,
                      double learning_rate, std::int64_t step) = 0;

 private:
  std::map<std::string, Tensor> state_;
};

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

/// Scales the gradients so that their joint norm is at most `limit` and returns the norm before
/// (Pascanu et al. 2013, "On the difficulty of training recurrent neural networks"); a limit of 0
/// changes nothing.
double clip_norm(Gradients& gradients, double limit);

/// The learning rate of update `step` of `steps`: a pure function, so that a resume needs no state.
///
///   warm-up   lr (step + 1) / warmup while step < warmup; after it, with p = (step - warmup) /
///   (steps - warmup): constant  lr linear    lr (floor + (1 - floor) (1 - p)) cosine    lr (floor
///   + (1 - floor) (1 + cos(pi p)) / 2)   (Loshchilov & Hutter 2017, "SGDR")
double learning_rate(const ScheduleOptions& schedule, double lr, std::int64_t step,
                     std::int64_t steps);

}  // namespace qkv
