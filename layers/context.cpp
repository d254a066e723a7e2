#include "layers/context.h"

namespace qkv {

Recorder::Recorder(Module& model) {
  struct Paths final : ModuleVisitor {
    explicit Paths(std::map<const Module*, std::string>& paths) : paths(paths) {}
    void parameter(const std::string&, Parameter&) override {}
    void module(const std::string& path, Module& module) override { paths[&module] = path + "."; }
    std::map<const Module*, std::string>& paths;
  } visitor(paths_);
  model.visit(visitor);
}

void Recorder::record(const Module& module, std::string_view what, const Tensor& value) {
  const auto path = paths_.find(&module);
  recorded_[(path == paths_.end() ? "" : path->second) + std::string(what)] = value.detach();
}

const Tensor& Recorder::at(const std::string& path) const {
  const auto found = recorded_.find(path);
  if (found != recorded_.end()) return found->second;
  std::string known;
  for (const auto& [name, value] : recorded_) known += " " + name;
  throw ValueError(fmt::format("[recorder] nothing recorded as {}; there are:{}", path, known));
}

}  // namespace qkv
