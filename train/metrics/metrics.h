#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qkv {

/// A line of metrics.jsonl, or of the metrics in a checkpoint: an evaluation of a split.
struct MetricsEvent {
  std::int64_t step = 0;
  std::string split;
  std::optional<double> loss;
  std::optional<double> seconds;  ///< since the program started; not in a checkpoint
  std::string json;               ///< the line; its other members are numbers or null, too
};

/// Values that an evaluation measured, by name.
using MetricValues = std::vector<std::pair<std::string, double>>;

/// A line of metrics.jsonl, without its end: step, split and values, null where not finite.
std::string metrics_line(std::int64_t step, std::string_view split, const MetricValues& values);

struct Metrics {
  std::vector<MetricsEvent> events;
  /// Numbers of the lines that are no events. A last line without its end does not count: the
  /// process was killed while it wrote it.
  std::vector<std::size_t> malformed = {};
};

Metrics parse_metrics(std::string_view lines);
/// No events where there is no such file. Throws as `read_file` does when it cannot be read.
Metrics read_metrics(const std::filesystem::path& file);
/// The events of a file all of whose lines are events. Throws UserError naming the line that is
/// none.
std::vector<MetricsEvent> read_valid_metrics(const std::filesystem::path& file);

}  // namespace qkv
