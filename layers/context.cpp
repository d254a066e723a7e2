#include "layers/context.h"

#include <algorithm>

namespace qkv {

Recorder::Recorder(Module& model) {
  for (const auto& [path, module] : modules<Module>(model)) paths_[module] = path;
}

const Recorder::Record* Recorder::find(const std::string& path) const {
  const auto found = std::ranges::find(recorded_, path, &Record::path);
  return found == recorded_.end() ? nullptr : &*found;
}

std::string Recorder::path_of(const Module& module) const {
  const auto found = paths_.find(&module);
  return found == paths_.end() ? "" : found->second;
}

std::string Recorder::path_of(const Module& module, std::string_view name) const {
  const std::string owner = path_of(module);
  return owner + (owner.empty() ? "" : ".") + std::string(name);
}

void Recorder::record(const Module& module, std::string_view name, const Tensor& value,
                      Formula formula) {
  const std::string owner = path_of(module), path = path_of(module, name);
  if (formula.symbol.empty()) formula.symbol = std::string(name) + "_i";
  std::erase_if(recorded_, [&](const Record& record) { return record.path == path; });
  recorded_.push_back({path, owner, std::string(name), layer_, value.detach(), std::move(formula)});
}

void Recorder::enter_layer(const Module* block, Index number) {
  layer_.reset();
  if (block) layer_ = Layer{path_of(*block), number};
}

const Tensor& Recorder::at(const std::string& path) const {
  if (const Record* found = find(path)) return found->value;
  std::string known;
  for (const Record& record : recorded_) known += " " + record.path;
  throw ValueError(fmt::format("[recorder] nothing recorded as {}; there are:{}", path, known));
}

}  // namespace qkv
