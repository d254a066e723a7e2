#include "inspect/event_file.h"

#include <array>
#include <bit>
#include <concepts>

namespace qkv {
namespace {

/// CRCs of single bytes, by the reflected polynomial 0x1EDC6F41.
constexpr auto crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78U : 0U);
    table[i] = crc;
  }
  return table;
}();

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

/// How a field of a message is encoded.
enum class Wire : std::uint64_t { varint = 0, bits64 = 1, bytes = 2, bits32 = 5 };

/// Field numbers of event.proto and summary.proto.
namespace event_field {
constexpr std::uint64_t wall_time = 1, step = 2, file_version = 3, summary = 5;
}
namespace summary_field {
constexpr std::uint64_t value = 1;
}
namespace value_field {
constexpr std::uint64_t tag = 1, simple_value = 2;
}

/// A message of Protocol Buffers being written.
class Message {
 public:
  Message& varint(std::uint64_t field, std::uint64_t value) {
    key(field, Wire::varint);
    write_varint(value);
    return *this;
  }
  Message& bits(std::uint64_t field, double value) {
    key(field, Wire::bits64);
    bytes_ += little_endian(std::bit_cast<std::uint64_t>(value));
    return *this;
  }
  Message& bits(std::uint64_t field, float value) {
    key(field, Wire::bits32);
    bytes_ += little_endian(std::bit_cast<std::uint32_t>(value));
    return *this;
  }
  Message& text(std::uint64_t field, std::string_view value) {
    key(field, Wire::bytes);
    write_varint(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void key(std::uint64_t field, Wire wire) {
    write_varint(field << 3 | static_cast<std::uint64_t>(wire));
  }
  void write_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(0x80 | (value & 0x7F));
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : bytes)
    crc = (crc >> 8) ^ crc_table[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

std::string event_record(std::string_view event) {
  const std::string length = little_endian(std::uint64_t{event.size()});
  return length + little_endian(masked_crc(length)) + std::string(event) +
         little_endian(masked_crc(event));
}

std::string version_event(double wall_time) {
  return Message()
      .bits(event_field::wall_time, wall_time)
      .text(event_field::file_version, "brain.Event:2")
      .bytes();
}

std::string scalar_event(double wall_time, std::int64_t step,
                         const std::vector<EventScalar>& scalars) {
  Message summary;
  for (const EventScalar& scalar : scalars)
    summary.text(summary_field::value,
                 Message()
                     .text(value_field::tag, scalar.tag)
                     .bits(value_field::simple_value, static_cast<float>(scalar.value))
                     .bytes());
  return Message()
      .bits(event_field::wall_time, wall_time)
      .varint(event_field::step, static_cast<std::uint64_t>(step))
      .text(event_field::summary, summary.bytes())
      .bytes();
}

}  // namespace qkv
