#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// TensorBoard's event files: TFRecords (tensorflow/core/lib/io/record_writer.h) of Event messages
/// (tensorflow/core/util/event.proto) in the wire format of Protocol Buffers.
namespace qkv {

/// CRC-32C (Castagnoli, RFC 3720, B.4), by the reflected polynomial 0x1EDC6F41.
std::uint32_t crc32c(std::string_view bytes);

/// A TFRecord: length, its masked CRC-32C, the event, its masked CRC-32C.
std::string event_record(std::string_view event);

/// The first event of a file; `wall_time` in seconds since 1970.
std::string version_event(double wall_time);

/// The event of a step: values of series by tag, stored as float32; `wall_time` in seconds since
/// 1970.
std::string scalar_event(double wall_time, std::int64_t step,
                         const std::vector<std::pair<std::string, double>>& scalars);

}  // namespace qkv
