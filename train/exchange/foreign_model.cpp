#include "train/exchange/foreign_model.h"

#include <array>

namespace qkv {

ActivationKind activation_of(const JsonOptions& options, const std::string& key,
                             ActivationKind usual) {
  // The first is exact, the others are the tanh approximation.
  static constexpr std::array<std::string_view, 4> activations = {"gelu", "gelu_new",
                                                                  "gelu_pytorch_tanh", "gelu_fast"};
  if (options.find(key).is_null()) return usual;
  return options.choice(key, activations) == 0 ? ActivationKind::gelu : ActivationKind::gelu_tanh;
}

double dropout_of(const JsonOptions& options, const std::string& key,
                  std::initializer_list<std::string> others) {
  const double probability = options.number(key, 0, 1, 0.1);
  for (const std::string& other : others)
    options.demand(options.number(other, 0, 1, 0.1) == probability, other,
                   fmt::format("must be {} = {}, since a model has one dropout probability; it has "
                               "an effect in training alone",
                               key, probability));
  return probability;
}

void take_linear(Import& import, TensorSource& source, const std::string& path,
                 const std::string& name, const Shape& shape) {
  import.parameter(path + ".weight") = source.take(name + ".weight", shape);
  import.parameter(path + ".bias") = source.take(name + ".bias", {shape[0]});
}

void take_norm(Import& import, TensorSource& source, const std::string& path,
               const std::string& name) {
  const Index width = import.config.model.width;
  import.parameter(path + ".weight") = source.take(name + ".weight", {width});
  import.parameter(path + ".bias") = source.take(name + ".bias", {width});
}

}  // namespace qkv
