#include "layers/context.h"

#include <algorithm>

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

const Recorder::Record* Recorder::find(const std::string& path) const {
  const auto found = std::ranges::find(recorded_, path, &Record::path);
  return found == recorded_.end() ? nullptr : &*found;
}

void Recorder::record(const Module& module, std::string_view what, const Tensor& value) {
  const auto prefix = paths_.find(&module);
  const std::string path = (prefix == paths_.end() ? "" : prefix->second) + std::string(what);
  const auto found = std::ranges::find(recorded_, path, &Record::path);
  if (found == recorded_.end())
    recorded_.push_back({path, value.detach()});
  else
    found->value = value.detach();
}

const Tensor& Recorder::at(const std::string& path) const {
  if (const Record* found = find(path)) return found->value;
  std::string known;
  for (const Record& record : recorded_) known += " " + record.path;
  throw ValueError(fmt::format("[recorder] nothing recorded as {}; there are:{}", path, known));
}

}  // namespace qkv
