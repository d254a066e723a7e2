#include "cli/commands/sweep_axes.h"

#include <algorithm>

namespace qkv::commands {
namespace {

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// `labels`: all categories in their order, `texts`: those of the candidates.
CandidateAxis category_axis(const std::string& name, const std::vector<std::string>& labels,
                            const std::vector<std::string>& texts) {
  CandidateAxis axis{Axis::of_categories(name, labels), {}, texts};
  for (const std::string& text : texts)
    axis.values.push_back(static_cast<double>(std::ranges::find(labels, text) - labels.begin()));
  return axis;
}

CandidateAxis variant_axis(const SweepFile& file, const Json& candidates) {
  const std::size_t points = file.variants.size() / file.crossed.size();
  std::vector<std::string> texts;
  for (const Json& candidate : candidates) {
    const auto place =
        std::ranges::find(file.variants, candidate["name"].get<std::string>(), &Variant::name) -
        file.variants.begin();
    texts.push_back(file.crossed[static_cast<std::size_t>(place) / points]);
  }
  return category_axis("variant", file.crossed, texts);
}

bool any_has(const SweepFile& file, const std::string& key, TomlAxis::Kind kind) {
  return std::ranges::any_of(file.sweeps, [&](const TomlSweep& sweep) {
    return std::ranges::any_of(
        sweep.axes, [&](const TomlAxis& axis) { return axis.key == key && axis.kind == kind; });
  });
}

CandidateAxis option_axis(const SweepFile& file, const Json& candidates, const std::string& key) {
  std::vector<Json> values;
  std::vector<std::string> texts;
  for (const Json& candidate : candidates) {
    values.push_back(candidate["options"][key]);
    texts.push_back(text_of(values.back()));
  }
  const bool is_log = any_has(file, key, TomlAxis::Kind::log_range);
  if (is_log || any_has(file, key, TomlAxis::Kind::range)) {
    const std::vector<double> positions(values.begin(), values.end());
    return {Axis::of_numbers(key, positions, is_log), positions, texts};
  }
  std::ranges::sort(values);
  std::vector<std::string> labels;
  for (const Json& value : values)
    if (labels.empty() || labels.back() != text_of(value)) labels.push_back(text_of(value));
  return category_axis(key, labels, texts);
}

}  // namespace

std::vector<CandidateAxis> axes_of(const SweepFile& file, const Json& candidates) {
  std::vector<CandidateAxis> axes;
  if (!file.crossed.empty()) axes.push_back(variant_axis(file, candidates));
  for (const TomlSweep& sweep : file.sweeps)
    for (const TomlAxis& axis : sweep.axes) {
      const auto has_key = [&](const CandidateAxis& other) {
        return other.axis.name() == axis.key;
      };
      if (candidates[0]["options"].contains(axis.key) && std::ranges::none_of(axes, has_key))
        axes.push_back(option_axis(file, candidates, axis.key));
    }
  return axes;
}

}  // namespace qkv::commands
