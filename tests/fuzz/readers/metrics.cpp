// metrics.jsonl, and the metrics in a checkpoint.
#include "train/metrics/metrics.h"

#include <algorithm>

#include "core/error.h"
#include "tests/fuzz/readers/input.h"

void qkv::fuzz::read(std::span<const std::byte> input) {
  const Metrics metrics = parse_metrics(text_of(input));
  const auto lines = std::ranges::count(input, std::byte{'\n'}) + 1;
  demand(std::ssize(metrics.events) + std::ssize(metrics.malformed) <= lines);
  for (const MetricsEvent& event : metrics.events) demand(event.step >= 0);
  require<FileError>(metrics.malformed.empty(), "has lines that are no events");
}
