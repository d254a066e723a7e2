#include "optim/optimizer.h"

#include <algorithm>

#include "core/parallel.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/muon.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"

namespace qkv {
namespace {

constexpr Index operations_per_element = 16;

std::string slot_path(const std::string& slot, const std::string& path) {
  return slot + "." + path;
}

template <class Rule>
constexpr OptimizerRow row(OptimizerKind kind, std::string_view name, std::string_view help,
                           OptimizerTraits reads) {
  return {kind, name, help,
          [](const OptimizerOptions& options) -> std::unique_ptr<Optimizer> {
            return std::make_unique<Rule>(options);
          },
          reads};
}

constexpr auto optimizer_rows = std::to_array<OptimizerRow>({
    row<Sgd>(OptimizerKind::sgd, "sgd", "gradient descent, with momentum",
             {.momentum = true, .nesterov = true}),
    row<Adam>(OptimizerKind::adam, "adam", "moments of the gradient, weight decay in it",
              {.beta1 = true, .beta2 = true, .amsgrad = true, .epsilon = true}),
    row<Adam>(OptimizerKind::adamw, "adamw", "Adam with decoupled weight decay",
              {.beta1 = true, .beta2 = true, .amsgrad = true, .epsilon = true}),
    row<RmsProp>(OptimizerKind::rmsprop, "rmsprop", "mean squared gradient",
                 {.momentum = true, .beta2 = true, .epsilon = true}),
    row<Adagrad>(OptimizerKind::adagrad, "adagrad", "sum of squared gradients", {.epsilon = true}),
    row<Muon>(OptimizerKind::muon, "muon",
              "orthogonalised momentum for hidden matrices, AdamW for the rest",
              {.beta1 = true, .beta2 = true, .amsgrad = true, .epsilon = true}),
});
static_assert(lists_every_kind(optimizer_rows));

bool multiplies_input(Role role) {
  switch (role) {
    case Role::weight:
    case Role::query:
    case Role::key:
    case Role::value:
    case Role::attention_output:
    case Role::feed_forward_input:
    case Role::feed_forward_output:
    case Role::head:
      return true;
    case Role::bias:
    case Role::norm:
    case Role::embedding:
    case Role::position:
      return false;
  }
  return false;
}

}  // namespace

void Optimizer::step(std::span<const NamedParameter> parameters, const Gradients& gradients,
                     double learning_rate, std::int64_t step) {
  require<ValueError>(step >= 0, "[optimizer] updates count from 0, got step {}", step);
  std::string missing;
  std::size_t trained = 0;
  for (const auto& [path, parameter] : parameters) {
    if (gradients.has(*parameter))
      ++trained;
    else if (!parameter->frozen())
      missing += " " + path;
  }
  require<ValueError>(missing.empty() || !options_.require_gradients,
                      "[optimizer] no gradient for:{}; freeze what is not to be trained", missing);
  require<ValueError>(trained == gradients.size(),
                      "[optimizer] {} parameters have gradients but {} are listed: a module's "
                      "visit() leaves some out, or the list is of another module or a copy",
                      gradients.size(), trained);

  std::vector<Section> divided, whole;
  Index elements = 0;
  for (const NamedParameter& named : parameters) {
    Parameter& parameter = *named.parameter;
    if (!gradients.has(parameter)) continue;
    parameter.make_unshared();
    const Index size = parameter.value().size();
    const bool at_once = updates_whole(parameter);
    const Index begin = at_once ? 0 : elements;
    (at_once ? whole : divided)
        .push_back({parameter, gradients.of(parameter), slots_of(named),
                    decays(parameter) ? options_.weight_decay : 0, begin, begin + size});
    if (!at_once) elements += size;
  }
  // Threads divide the elements of all parameters as if they were one vector.
  parallel_for(partition(elements, operations_per_element), [&](Index begin, Index end) {
    for (Section section : divided) {
      const Index start = section.begin;
      section.begin = std::max(begin, start) - start;
      section.end = std::min(end, section.end) - start;
      if (section.begin < section.end) update(section, learning_rate, step);
    }
  });
  parallel_for(std::ssize(whole),
               [&](Index i) { update(whole[static_cast<std::size_t>(i)], learning_rate, step); });
}

std::span<Tensor> Optimizer::slots_of(const NamedParameter& named) {
  std::vector<Tensor>& slots = state_[named.path];
  slots.resize(static_cast<std::size_t>(this->slots(*named.parameter)));
  const Tensor& value = named.parameter->value();
  for (Tensor& slot : slots)  // a checkpoint may hold what the last update left
    slot = slot ? copy_if_shared(std::move(slot)) : Tensor::zeros(value.shape(), value.dtype());
  return slots;
}

std::map<std::string, Tensor> Optimizer::state() const {
  std::map<std::string, Tensor> all;
  for (const auto& [path, slots] : state_)
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i]) all[slot_path(slots_[i], path)] = slots[i];
  return all;
}

void Optimizer::load_state(std::span<const NamedParameter> parameters,
                           const std::map<std::string, Tensor>& state) {
  std::map<std::string, std::vector<Tensor>> loaded;
  auto unknown = state;
  for (const auto& [path, parameter] : parameters)
    for (Index i = 0; i < slots(*parameter); ++i) {
      const std::string& slot = slots_[static_cast<std::size_t>(i)];
      auto found = unknown.extract(slot_path(slot, path));
      const Tensor value = found ? found.mapped() : Tensor();
      require<ValueError>(!value || value.shape() == parameter->shape(),
                          "[optimizer] state {} has shape {} instead of {}", slot_path(slot, path),
                          value.shape(), parameter->shape());
      require<ValueError>(!value || value.dtype() == parameter->value().dtype(),
                          "[optimizer] state {} holds {} instead of {}", slot_path(slot, path),
                          to_string(value.dtype()), to_string(parameter->value().dtype()));
      loaded[path].push_back(value);
    }
  require<ValueError>(unknown.empty(), "[optimizer] state {} belongs to no parameter",
                      unknown.empty() ? "" : unknown.begin()->first);
  state_ = std::move(loaded);
}

std::span<const OptimizerRow> optimizer_kinds() {
  return optimizer_rows;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  return row_of(optimizer_rows, options.kind).make(options);
}

bool decays(const Parameter& parameter) {
  return parameter.shape().rank() >= 2 && multiplies_input(parameter.role());
}

}  // namespace qkv
