#include "layers/context.h"

#include <algorithm>

namespace qkv {
namespace {

/// The formula in the module's table.
Formula formula_of(const Module& module, std::string_view name) {
  Formula formula;
  if (const auto* source = dynamic_cast<const FormulaSource*>(&module))
    for (FormulaSource::Row& row : source->formulas())
      if (row.name == name) formula = std::move(row.formula);
  if (formula.symbol.empty()) formula.symbol = std::string(name) + "_i";
  return formula;
}

}  // namespace

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

void Recorder::record(const Module& module, std::string_view name, const Tensor& value) {
  const std::string path = path_of(module, name);
  const std::size_t dot = path.rfind('.');
  const std::string owner = dot == path.npos ? "" : path.substr(0, dot),
                    last = path.substr(dot + 1);
  std::erase_if(recorded_, [&](const Record& record) { return record.path == path; });
  recorded_.push_back({path, owner, last, layer_, value.detach(), formula_of(module, name)});
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
