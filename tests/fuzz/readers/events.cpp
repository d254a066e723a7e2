// A TensorBoard event file, whose images a resumed run keeps.
#include <algorithm>

#include "core/error.h"
#include "tests/fuzz/readers/input.h"
#include "train/metrics/event_file.h"

void qkv::fuzz::read(std::span<const std::byte> input) {
  const std::string_view file = text_of(input);
  std::string again;
  for (const std::string_view event : events_in(file)) again += event_record(event);
  demand(file.starts_with(again));
  // Few inputs have the right checksums, so the message is tried alone, too.
  const StoredEvent stored = stored_event(file);
  demand(stored.summary.size() <= file.size());
  require<FileError>(again.size() == file.size(), "has a record that is incomplete or damaged");
}
