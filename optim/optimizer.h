#pragma once

#include <array>
#include <concepts>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/autograd.h"
#include "core/parameter.h"
#include "optim/options.h"

namespace qkv {

/// Updates parameters by their gradients. A subclass names its slots and updates one section.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Update number `step`, counted from 0, at `learning_rate`, which a schedule may have taken from
  /// the options' (optim/schedule.h). Throws ValueError when there are gradients of parameters that
  /// are not listed, when `step` is negative and, with `require_gradients`, naming every listed
  /// parameter that has none.
  void step(std::span<const NamedParameter> parameters, const Gradients& gradients,
            double learning_rate, std::int64_t step);
  /// The learning rate comes first.
  template <std::integral Step, std::floating_point Rate>
  void step(std::span<const NamedParameter>, const Gradients&, Step, Rate) = delete;

  /// The number of values that are kept for each element of a parameter.
  virtual Index slots(const Parameter&) const { return std::ssize(slots_); }
  /// State of the next update, by "slot.path", such as "first_moment.encoder.norm.weight":
  /// what a checkpoint stores.
  std::map<std::string, Tensor> state() const;
  /// The parameter that an entry of `state` belongs to.
  static std::string_view path_of(std::string_view name) { return name.substr(name.find('.') + 1); }
  /// Throws ValueError when a name, shape or dtype does not belong to these parameters.
  void load_state(std::span<const NamedParameter> parameters,
                  const std::map<std::string, Tensor>& state);

 protected:
  /// `slots` names the tensors kept for a parameter, of its shape and starting at 0; one that has
  /// fewer has the first of them.
  Optimizer(const OptimizerOptions& options, std::vector<std::string> slots)
      : options_(options), slots_(std::move(slots)) {}

  /// Elements [begin, end) of a parameter, its gradient and its slots.
  struct Section {
    Parameter& parameter;
    const Tensor& gradient;
    std::span<Tensor> slots;
    double weight_decay;
    Index begin, end;
  };
  /// Updates these elements; other threads may update others.
  virtual void update(const Section& section, double learning_rate, std::int64_t step) const = 0;
  /// Whether `update` takes all elements of a parameter at once.
  virtual bool updates_whole(const Parameter&) const { return false; }

  /// f(value, gradient, slot...) for each element of a section with `count` slots.
  template <class T, std::size_t count, class F>
  static void for_each_element(const Section& section, F f) {
    for_each_element<T>(section, std::make_index_sequence<count>(), f);
  }

  OptimizerOptions options_;

 private:
  template <class T, std::size_t... I, class F>
  static void for_each_element(const Section& section, std::index_sequence<I...>, F f) {
    T* const value = section.parameter.mutable_data<T>().data();
    const T* const g = section.gradient.data<T>().data();
    const std::array<T*, sizeof...(I)> slot{section.slots[I].template mutable_data<T>().data()...};
    for (Index i = section.begin; i < section.end; ++i) f(value[i], g[i], slot[I][i]...);
  }
  /// Writable slots of a parameter, in the order of their names.
  std::span<Tensor> slots_of(const NamedParameter& named);

  std::vector<std::string> slots_;
  std::map<std::string, std::vector<Tensor>> state_;  ///< slots by path of the parameter
};

/// Which of the options that not every optimizer reads one reads.
struct OptimizerTraits {
  bool momentum = false, nesterov = false, beta1 = false, beta2 = false, amsgrad = false,
       epsilon = false;
};

/// A kind of optimizer.
struct OptimizerRow {
  OptimizerKind value;
  std::string_view name, help;
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions& options);
  OptimizerTraits reads;
};
std::span<const OptimizerRow> optimizer_kinds();

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

/// Whether weight decay applies to a parameter: to weights with two axes or more that multiply
/// their input. Biases, gains of norms and other vectors are spared, and so are tables of
/// embeddings and positions: a step uses a few rows, and decay would shrink the others.
bool decays(const Parameter& parameter);

}  // namespace qkv
