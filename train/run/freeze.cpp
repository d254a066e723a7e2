#include "train/run/freeze.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "train/config/spelling.h"

namespace qkv {
namespace {

bool is_end_of(const std::string& path, const std::string& name) {
  return path == name || path.ends_with("." + name);
}

[[noreturn]] void refuse_part(const std::string& name,
                              std::span<const std::pair<std::string, Module*>> parts) {
  std::vector<std::string> ends, near_the_root;
  for (const auto& [path, part] : parts) {
    ends.push_back(path);
    for (auto dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1))
      ends.push_back(path.substr(dot + 1));
    if (std::ranges::count(path, '.') <= 2) near_the_root.push_back(path);
  }
  const auto nearest = nearest_name(name, ends);
  throw UserError(fmt::format("train.freeze: \"{}\" is no part of the model; {}", name,
                              nearest ? fmt::format("did you mean \"{}\"?", *nearest)
                                      : fmt::format("it has: {}", fmt::join(near_the_root, ", "))));
}

}  // namespace

void freeze_parts(Module& module, std::span<const std::string> names) {
  const auto parts = modules<Module>(module);
  for (const std::string& name : names) {
    bool known = false;
    for (const auto& [path, part] : parts) {
      if (!is_end_of(path, name)) continue;
      known = true;
      for (const auto& [_, parameter] : parameters(*part)) parameter->freeze();
    }
    if (!known) refuse_part(name, parts);
  }
  const auto all = parameters(module);
  require<UserError>(
      names.empty() ||
          !std::ranges::all_of(all, [](const NamedParameter& p) { return p.parameter->frozen(); }),
      "train.freeze leaves no parameter to train");
}

}  // namespace qkv
