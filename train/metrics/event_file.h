#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// TensorBoard's event files: TFRecords (tensorflow/core/lib/io/record_writer.h) of Event messages
/// (tensorflow/core/util/event.proto) in the wire format of Protocol Buffers.
namespace qkv {

/// CRC-32C (Castagnoli, RFC 3720, B.4).
std::uint32_t crc32c(std::string_view bytes);

/// A TFRecord: length, its masked CRC-32C, the event, its masked CRC-32C.
std::string event_record(std::string_view event);

/// The events of a file's bytes, up to the first record that is incomplete or damaged. They are
/// parts of `file`.
std::vector<std::string_view> events_in(std::string_view file);

/// A point of the series `tag`.
struct EventScalar {
  std::string tag;
  double value;  ///< stored as float32
};

struct EventImage {
  std::string tag;
  std::int64_t height, width;
  std::string png;
};

/// The first event of a file.
std::string version_event(double wall_time);

/// What happened at a step, without its time.
struct EventContent {
  std::int64_t step;
  std::vector<EventScalar> scalars = {};
  std::vector<EventImage> images = {};
};

/// An event; `wall_time` in seconds since 1970.
std::string event_of(double wall_time, const EventContent& content);

/// What is read back of an event.
struct StoredEvent {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string_view summary;  ///< encoded
  bool has_image = false;
};

/// An event of a file; all zero where its bytes are no such message.
StoredEvent stored_event(std::string_view event);

}  // namespace qkv
