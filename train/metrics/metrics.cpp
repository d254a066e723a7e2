#include "train/metrics/metrics.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "train/storage/durable_file.h"

namespace qkv {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> value_of(const Json& event, const char* name) {
  const auto found = event.find(name);
  return found == event.end() || found->is_null() ? std::nullopt
                                                  : std::optional(found->get<double>());
}

bool is_step(const Json& value) {
  return value.is_number_unsigned() && std::in_range<std::int64_t>(value.get<std::uint64_t>());
}

std::optional<MetricsEvent> parse_event(std::string_view line) {
  const Json event = Json::parse(line, nullptr, false);
  if (!event.is_object()) return std::nullopt;
  if (!event.contains("step") || !event.contains("split")) return std::nullopt;
  for (const auto& [name, value] : event.items()) {
    const bool valid = name == "split"  ? value.is_string()
                       : name == "step" ? is_step(value)
                                        : value.is_number() || value.is_null();
    if (!valid) return std::nullopt;
  }
  return MetricsEvent{event["step"], event["split"], value_of(event, "loss"),
                      value_of(event, "seconds"), std::string(line)};
}

}  // namespace

std::string metrics_line(std::int64_t step, std::string_view split, const MetricValues& values) {
  Json line = {{"step", step}, {"split", split}};
  for (const auto& [name, value] : values) line[name] = value;
  return line.dump();
}

Metrics parse_metrics(std::string_view lines) {
  Metrics metrics;
  for (std::size_t count = 1; !lines.empty(); ++count) {
    const std::size_t end = lines.find('\n');
    if (auto event = parse_event(lines.substr(0, end)))
      metrics.events.push_back(std::move(*event));
    else if (end != lines.npos)
      metrics.malformed.push_back(count);
    lines.remove_prefix(std::min(end, lines.size() - 1) + 1);
  }
  return metrics;
}

Metrics read_metrics(const std::filesystem::path& file) {
  constexpr std::uint64_t max_bytes = std::uint64_t{1} << 30;
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown) && !unknown) return {};
  return parse_metrics(read_file(file, max_bytes));
}

std::vector<MetricsEvent> read_valid_metrics(const std::filesystem::path& file) {
  Metrics metrics = read_metrics(file);
  require<UserError>(metrics.malformed.empty(),
                     "{}:{}: is not a line of metrics with a step, a split and numbers",
                     file.string(), metrics.malformed.empty() ? 0 : metrics.malformed.front());
  return std::move(metrics.events);
}

}  // namespace qkv
