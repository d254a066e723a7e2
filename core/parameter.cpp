#include "core/parameter.h"

#include <algorithm>

namespace qkv {

Parameter::Parameter(const Tensor& initial, Role role) : state_(std::make_shared<State>()) {
  auto node = std::make_shared<Node>("parameter");
  *state_ = {node, initial.with_node(node), role};
}

Parameter::Parameter(const Shape& shape, Initialiser initialiser, Role role)
    : Parameter(Tensor::empty(shape, DType::float32), role) {
  state_->initialiser = std::move(initialiser);
  state_->has_value = false;
}

Parameter::Parameter(const Parameter& other) : Parameter(other.state().value, other.role()) {
  state_->initialiser = other.state().initialiser;
  state_->has_value = other.state().has_value;
  if (other.frozen()) freeze();
}

void Parameter::throw_no_value() const {
  throw ValueError(fmt::format(
      "[parameter] {} of shape {} has no value yet; call initialise(module, seed), or load a "
      "checkpoint into the module{}",
      path().empty() ? "a parameter" : path(), shape(),
      path().empty() ? ", and name the parameter in the module's `visit`" : ""));
}

void Parameter::throw_moved() {
  throw ValueError(
      "[parameter] was moved from; call the module that its module was moved to, or copy modules "
      "instead of moving them");
}

void Parameter::assign(const Tensor& value) {
  require(value.shape() == shape(), "[parameter] has shape {}, cannot take a value of shape {}",
          shape(), value.shape());
  state().value = value.with_node(frozen() ? nullptr : state().node);
  state().has_value = true;
}

ModuleVisitor& ModuleVisitor::operator()(const std::string& name, Parameter& p) {
  parameter(prefix_ + name, p);
  return *this;
}

ModuleVisitor& ModuleVisitor::operator()(const std::string& name, Module& child) {
  module(prefix_ + name, child);
  const std::string outer = prefix_;
  prefix_ += name + ".";
  child.visit(*this);
  prefix_ = outer;
  return *this;
}

void ModuleVisitor::module(const std::string&, Module&) {}

namespace {

/// Takes a const module, too: `visit` changes no member, and this visitor changes no parameter.
std::vector<NamedParameter> listed(const Module& module) {
  struct Collector final : ModuleVisitor {
    std::vector<NamedParameter> found;
    void parameter(const std::string& path, Parameter& p) override {
      const auto is_known = [&](const NamedParameter& n) {
        return n.parameter->node() == p.node();
      };
      if (std::ranges::any_of(found, is_known)) return;
      require<ValueError>(std::ranges::find(found, path, &NamedParameter::path) == found.end(),
                          "[module] `visit` gives two parameters the name {}", path);
      found.emplace_back(path, &p);
    }
  } collector;
  const_cast<Module&>(module).visit(collector);
  return std::move(collector.found);
}

}  // namespace

std::vector<NamedParameter> parameters(Module& module) {
  std::vector<NamedParameter> all = listed(module);
  for (NamedParameter& named : all) named.parameter->state().path = named.path;
  return all;
}

void initialise(Module& module, Random& random) {
  for (const auto& [path, parameter] : parameters(module))
    if (const Initialiser& draw = parameter->state().initialiser)
      parameter->assign(draw(parameter->shape(), random.next()).to(parameter->dtype()));
}

void initialise(Module& module, std::uint64_t seed) {
  Random random(seed, Purpose::initialisation);
  initialise(module, random);
}

std::map<std::string, Tensor> state_of(const Module& module) {
  std::map<std::string, Tensor> state;
  for (const auto& [path, parameter] : listed(module)) state[path] = parameter->value().detach();
  return state;
}

void load_state(Module& module, const std::map<std::string, Tensor>& state) {
  std::string wrong;
  const auto add = [&](const std::string& what) { wrong += (wrong.empty() ? "" : "; ") + what; };
  auto unexpected = state;
  const auto expected = parameters(module);
  for (const auto& [path, parameter] : expected) {
    const auto found = unexpected.extract(path);
    if (!found)
      add(path + " is missing");
    else if (found.mapped().shape() != parameter->shape())
      add(fmt::format("{} has shape {} instead of {}", path, found.mapped().shape(),
                      parameter->shape()));
  }
  for (const auto& [path, value] : unexpected) add(path + " is not a parameter of it");
  require<ValueError>(wrong.empty(), "[load_state] {}", wrong);
  for (const auto& [path, parameter] : expected)
    parameter->assign(state.at(path).to(parameter->dtype()));
}

Index parameter_count(const Module& module) {
  Index count = 0;
  for (const auto& [path, parameter] : listed(module)) count += parameter->shape().size();
  return count;
}

void convert(Module& module, DType dtype) {
  for (const auto& [path, parameter] : parameters(module))
    parameter->assign(parameter->value().to(dtype));
}

}  // namespace qkv
