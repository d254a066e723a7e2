#include "core/parameter.h"

#include <algorithm>

namespace qkv {

Parameter::Parameter(const Tensor& initial, Role role)
    : node_(std::make_shared<Node>("parameter")), value_(initial.with_node(node_)), role_(role) {}

void Parameter::assign(const Tensor& value) {
  require(value.shape() == shape(), "[parameter] has shape {}, cannot take a value of shape {}",
          shape(), value.shape());
  value_ = value.with_node(frozen() ? nullptr : node_);
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

std::vector<NamedParameter> parameters(Module& module) {
  struct Collector final : ModuleVisitor {
    std::vector<NamedParameter> found;
    void parameter(const std::string& path, Parameter& p) override {
      const bool seen =
          std::ranges::any_of(found, [&](auto& known) { return known.parameter == &p; });
      if (!seen) found.push_back({path, &p});
    }
  } collector;
  module.visit(collector);
  return std::move(collector.found);
}

Index parameter_count(Module& module) {
  Index count = 0;
  for (const auto& [path, parameter] : parameters(module)) count += parameter->value().size();
  return count;
}

void convert(Module& module, DType dtype) {
  for (const auto& [path, parameter] : parameters(module))
    parameter->assign(parameter->value().to(dtype));
}

}  // namespace qkv
