#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/autograd.h"
#include "core/tensor.h"

namespace qkv {

/// A trainable tensor: the only object in qkv whose elements change. A copy is an independent
/// parameter.
class Parameter {
 public:
  explicit Parameter(const Tensor& initial);
  Parameter(const Parameter& other) : Parameter(other.value_) {}
  Parameter& operator=(const Parameter& other) { return *this = Parameter(other); }
  Parameter(Parameter&&) noexcept = default;
  Parameter& operator=(Parameter&&) noexcept = default;

  /// The current value, a leaf of the graph.
  const Tensor& value() const noexcept { return value_; }
  operator const Tensor&() const noexcept { return value_; }
  const Shape& shape() const noexcept { return value_.shape(); }
  /// Identifies the parameter in graphs and gradients.
  const Node* node() const noexcept { return node_.get(); }

  /// Replaces the value; the dtype may change. Throws ShapeError when the shape does.
  void assign(const Tensor& value);
  /// Write access for optimizers. Tensors that share the buffer keep the old elements
  /// (copy-on-write).
  template <class T>
  std::span<T> mutable_data() {
    make_unshared();
    return value_.mutable_data<T>();
  }
  /// Copies the buffer if a tensor shares it. After it, several threads may call `mutable_data`.
  void make_unshared() {
    if (!value_.unshared()) assign(copy_if_shared(value_));
  }
  /// A frozen parameter takes part in the computation but receives no gradient.
  void freeze() { value_ = value_.detach(); }
  bool frozen() const noexcept { return !value_.node(); }

 private:
  std::shared_ptr<Node> node_;
  Tensor value_;
};

class Module;

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

struct NamedParameter {
  std::string path;
  Parameter* parameter;

  bool operator==(const NamedParameter&) const = default;
};

/// The parameters of a module in the order in which it names them. Tied weights are
/// listed once.
std::vector<NamedParameter> parameters(Module& module);
/// Number of trainable elements.
Index parameter_count(Module& module);
/// Converts every parameter to another dtype.
void convert(Module& module, DType dtype);

}  // namespace qkv
