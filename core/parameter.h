#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/autograd.h"
#include "core/random.h"
#include "core/tensor.h"

namespace qkv {

/// A parameter's function in its module, set by the layer that creates it. Initialisation, weight
/// decay and analyses go by it, never by a path.
enum class Role {
  weight,  ///< multiplies its input; the role of what has no other
  bias,
  norm,       ///< gain of a normalization
  embedding,  ///< table with a row for each token
  position,   ///< table with a row for each position
  query,      ///< W_q of attention
  key,
  value,
  attention_output,  ///< W_o, whose result is added to the residual stream
  feed_forward_input,
  feed_forward_output,  ///< W_2, whose result is added to the residual stream
  head,                 ///< from vectors to logits
};

/// Whether the layer's result is added to the residual stream of a transformer block.
constexpr bool writes_to_residual(Role role) {
  return role == Role::attention_output || role == Role::feed_forward_output;
}

/// Draws the first values of a parameter in float32; layers/initialise.h has the usual ones.
using Initialiser = std::function<Tensor(const Shape& shape, const Random& random)>;

class Module;
struct NamedParameter;

/// A trainable tensor: the only object in qkv whose elements change. A copy is an independent
/// parameter of the same role, frozen where the other is.
class Parameter {
 public:
  explicit Parameter(const Tensor& initial, Role role = Role::weight);
  /// A float32 parameter without a value until `initialise` draws it or `assign` gives one.
  Parameter(const Shape& shape, Initialiser initialiser, Role role = Role::weight);
  Parameter(const Parameter& other);
  Parameter& operator=(const Parameter& other) { return *this = Parameter(other); }
  Parameter(Parameter&&) noexcept = default;
  Parameter& operator=(Parameter&&) noexcept = default;

  /// The current value, a leaf of the graph. Throws ValueError when there is none yet, and, as all
  /// other members do, when the parameter was moved from.
  const Tensor& value() const {
    if (!state().has_value) throw_no_value();
    return state().value;
  }
  operator const Tensor&() const { return value(); }
  const Shape& shape() const { return state().value.shape(); }
  DType dtype() const { return state().value.dtype(); }
  Role role() const { return state().role; }
  /// The path under which `parameters` last listed it; empty before.
  const std::string& path() const { return state().path; }
  /// Identifies the parameter in graphs and gradients.
  const Node* node() const { return state().node.get(); }

  /// Replaces the value; the dtype may change. Throws ShapeError when the shape does.
  void assign(const Tensor& value);
  /// Sets how `initialise` draws the value; with none, `initialise` leaves it as it is.
  void set_initialiser(Initialiser initialiser) { state().initialiser = std::move(initialiser); }
  /// Write access for optimizers. Tensors that share the buffer keep the old elements
  /// (copy-on-write).
  template <class T>
  std::span<T> mutable_data() {
    make_unshared();
    return state().value.mutable_data<T>();
  }
  /// Copies the buffer if a tensor shares it. After it, several threads may call `mutable_data`.
  void make_unshared() {
    if (!value().unshared()) assign(copy_if_shared(value()));
  }
  /// A frozen parameter takes part in the computation but receives no gradient.
  void freeze() { state().value = state().value.detach(); }
  bool frozen() const { return !state().value.node(); }

 private:
  friend struct NamedParameter;
  friend std::vector<NamedParameter> parameters(Module& module);
  friend void initialise(Module& module, Random& random);
  struct State {
    std::shared_ptr<Node> node;
    Tensor value;  ///< uninitialised elements until `has_value`
    Role role;
    Initialiser initialiser = {};
    bool has_value = true;
    std::string path = {};
  };
  State& state() const {
    if (!state_) throw_moved();
    return *state_;
  }
  [[noreturn]] void throw_no_value() const;
  [[noreturn]] static void throw_moved();
  explicit Parameter(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

/// Visits a module and its sub-modules. Each module names its members once, in `visit`; everything
/// that iterates over parameters (optimizers, checkpoints, inspection, gradient checks) uses that
/// list.
class ModuleVisitor {
 public:
  virtual ~ModuleVisitor() = default;
  ModuleVisitor& operator()(const std::string& name, Parameter& parameter);
  ModuleVisitor& operator()(const std::string& name, Module& child);
  /// Children of a list are named "name.0", "name.1", ...
  template <class M>
  ModuleVisitor& operator()(const std::string& name, std::vector<M>& children) {
    for (std::size_t i = 0; i < children.size(); ++i)
      (*this)(name + "." + std::to_string(i), children[i]);
    return *this;
  }

 protected:
  /// `path` is dotted: "encoder.layers.0.attention.w_q.weight".
  virtual void parameter(const std::string& path, Parameter& parameter) = 0;
  /// Called before the members of a sub-module.
  virtual void module(const std::string& path, Module& module);

 private:
  std::string prefix_;
};

/// Parameters and sub-modules. Layers are plain structs derived from it, each with a call operator
/// of its own signature.
class Module {
 public:
  virtual ~Module() = default;
  /// Names every parameter and sub-module: `visit("w_q", w_q)("w_k", w_k);`
  virtual void visit(ModuleVisitor& visit) = 0;
};

/// A parameter of a module and its path. It stays valid when the module is moved.
struct NamedParameter {
  NamedParameter(std::string name, Parameter* named)
      : path(std::move(name)), parameter(new Parameter(named->state_)) {}

  std::string path;
  std::shared_ptr<Parameter> parameter;
};

/// The parameters of a module in the order in which it names them. Tied weights are listed once.
/// Throws ValueError when two parameters have one name.
std::vector<NamedParameter> parameters(Module& module);
/// The modules of type M below `root`, by path, in the order in which they are named.
template <class M>
std::vector<std::pair<std::string, M*>> modules(Module& root) {
  struct Collector final : ModuleVisitor {
    std::vector<std::pair<std::string, M*>> found;
    void parameter(const std::string&, Parameter&) override {}
    void module(const std::string& path, Module& module) override {
      if (auto* const match = dynamic_cast<M*>(&module)) found.emplace_back(path, match);
    }
  } collector;
  root.visit(collector);
  return std::move(collector.found);
}

/// Draws the value of every parameter that has an initialiser, in the parameter's dtype. The n-th
/// one in the order of `visit` gets the n-th stream of `random`, so the order of members has no
/// effect. Parameters made from a tensor keep their value.
void initialise(Module& module, Random& random);
/// Draws from Random(seed, Purpose::initialisation).
void initialise(Module& module, std::uint64_t seed);

/// The values of all parameters by path: what a checkpoint stores of a model.
std::map<std::string, Tensor> state_of(const Module& module);
/// Gives every parameter its value in `state`, in the parameter's dtype. Throws ValueError naming
/// each parameter that is missing or of another shape and each value that belongs to none, and
/// changes nothing then.
void load_state(Module& module, const std::map<std::string, Tensor>& state);

/// Number of trainable elements.
Index parameter_count(const Module& module);
/// Converts every parameter to another dtype. Throws ValueError when one has no value yet.
void convert(Module& module, DType dtype);

}  // namespace qkv

/// A parameter is printed as its value.
template <>
struct fmt::formatter<qkv::Parameter> : fmt::formatter<qkv::Tensor> {};
