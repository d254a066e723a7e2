#include "inspect/event_file.h"

#include <bit>
#include <concepts>

namespace qkv {
namespace {

/// A CRC of data that holds CRCs is weak, so that TFRecords rotate and offset theirs.
std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

/// An unsigned integer as little-endian bytes.
template <std::unsigned_integral T>
std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xFF);
  return bytes;
}

// The wire format of Protocol Buffers. Field numbers are those of event.proto and summary.proto.

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7F));
  return bytes += static_cast<char>(value);
}

enum class Wire : std::uint64_t { varint = 0, bits64 = 1, bytes = 2, bits32 = 5 };

std::string key(std::uint64_t field, Wire wire) {
  return varint(field << 3 | static_cast<std::uint64_t>(wire));
}

std::string text_field(std::uint64_t field, std::string_view text) {
  return key(field, Wire::bytes) + varint(text.size()) + std::string(text);
}

std::string wall_time_field(double wall_time) {
  return key(1, Wire::bits64) + little_endian(std::bit_cast<std::uint64_t>(wall_time));
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78U : 0U);
  }
  return ~crc;
}

std::string event_record(std::string_view event) {
  const std::string length = little_endian(std::uint64_t{event.size()});
  return length + little_endian(masked_crc(length)) + std::string(event) +
         little_endian(masked_crc(event));
}

std::string version_event(double wall_time) {
  return wall_time_field(wall_time) + text_field(3, "brain.Event:2");
}

std::string scalar_event(double wall_time, std::int64_t step,
                         const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    summary += text_field(1, text_field(1, tag) + key(2, Wire::bits32) + little_endian(bits));
  }
  return wall_time_field(wall_time) + key(2, Wire::varint) +
         varint(static_cast<std::uint64_t>(step)) + text_field(5, summary);
}

}  // namespace qkv
