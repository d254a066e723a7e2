#include "train/metrics/event_file.h"

#include <array>
#include <bit>
#include <concepts>
#include <optional>

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

template <std::unsigned_integral T>
T from_little_endian(std::string_view bytes) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i));
  return value;
}

// How a field of a message is encoded.
enum class Wire : std::uint64_t { varint = 0, bits64 = 1, bytes = 2, bits32 = 5 };

// Numbers of the fields in event.proto and summary.proto.
namespace event_field {
constexpr std::uint64_t wall_time = 1, step = 2, file_version = 3, summary = 5;
}
namespace summary_field {
constexpr std::uint64_t value = 1;
}
namespace value_field {
constexpr std::uint64_t tag = 1, simple_value = 2, image = 4;
}
namespace image_field {
constexpr std::uint64_t height = 1, width = 2, colorspace = 3, encoded = 4;
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
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

/// A field of a message that is read: its integer or its bytes.
struct Field {
  std::uint64_t number = 0, value = 0;
  std::string_view bytes;
};

/// The fields of a message, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  /// Nothing at the end, and where the bytes are no message.
  std::optional<Field> next() {
    const auto key = read_varint();
    if (!key) return std::nullopt;
    Field field{.number = *key >> 3, .bytes = {}};
    const auto wire = static_cast<Wire>(*key & 7);
    std::optional<std::uint64_t> size = 0;
    if (wire == Wire::varint) {
      const auto value = read_varint();
      if (!value) return std::nullopt;
      field.value = *value;
    } else if (wire == Wire::bits64) {
      size = sizeof(std::uint64_t);
    } else if (wire == Wire::bits32) {
      size = sizeof(std::uint32_t);
    } else {
      size = wire == Wire::bytes ? read_varint() : std::nullopt;
    }
    if (!size || *size > rest_.size()) return std::nullopt;
    field.bytes = rest_.substr(0, *size);
    rest_.remove_prefix(*size);
    if (wire == Wire::bits64) field.value = from_little_endian<std::uint64_t>(field.bytes);
    return field;
  }

 private:
  std::optional<std::uint64_t> read_varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::string_view rest_;
};

/// The bytes of the first field of that number; empty without it.
std::string_view field_of(std::string_view message, std::uint64_t number) {
  Fields fields(message);
  while (const auto field = fields.next())
    if (field->number == number) return field->bytes;
  return {};
}

std::string encoded(const EventScalar& scalar) {
  return Message()
      .text(value_field::tag, scalar.tag)
      .bits(value_field::simple_value, static_cast<float>(scalar.value))
      .bytes();
}

std::string encoded(const EventImage& image) {
  constexpr std::uint64_t rgb = 3;
  const Message pixels = Message()
                             .varint(image_field::height, static_cast<std::uint64_t>(image.height))
                             .varint(image_field::width, static_cast<std::uint64_t>(image.width))
                             .varint(image_field::colorspace, rgb)
                             .text(image_field::encoded, image.png);
  return Message()
      .text(value_field::tag, image.tag)
      .text(value_field::image, pixels.bytes())
      .bytes();
}

constexpr std::size_t head_size = sizeof(std::uint64_t) + sizeof(std::uint32_t);

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

std::vector<std::string_view> events_in(std::string_view file) {
  std::vector<std::string_view> events;
  while (file.size() >= head_size + sizeof(std::uint32_t)) {
    const std::string_view length = file.substr(0, sizeof(std::uint64_t));
    const auto crc_at = [&](std::size_t at) {
      return from_little_endian<std::uint32_t>(file.substr(at));
    };
    const auto size = from_little_endian<std::uint64_t>(length);
    if (crc_at(length.size()) != masked_crc(length)) break;
    if (size > file.size() - head_size - sizeof(std::uint32_t)) break;
    const std::string_view event = file.substr(head_size, size);
    if (crc_at(head_size + size) != masked_crc(event)) break;
    events.push_back(event);
    file.remove_prefix(head_size + size + sizeof(std::uint32_t));
  }
  return events;
}

std::string version_event(double wall_time) {
  return Message()
      .bits(event_field::wall_time, wall_time)
      .text(event_field::file_version, "brain.Event:2")
      .bytes();
}

std::string event_of(double wall_time, const EventContent& content) {
  Message summary;
  for (const EventScalar& scalar : content.scalars)
    summary.text(summary_field::value, encoded(scalar));
  for (const EventImage& image : content.images) summary.text(summary_field::value, encoded(image));
  return Message()
      .bits(event_field::wall_time, wall_time)
      .varint(event_field::step, static_cast<std::uint64_t>(content.step))
      .text(event_field::summary, summary.bytes())
      .bytes();
}

StoredEvent stored_event(std::string_view event) {
  StoredEvent stored;
  Fields fields(event);
  while (const auto field = fields.next()) {
    if (field->number == event_field::wall_time)
      stored.wall_time = std::bit_cast<double>(field->value);
    if (field->number == event_field::step) stored.step = static_cast<std::int64_t>(field->value);
    if (field->number == event_field::summary) stored.summary = field->bytes;
  }
  const std::string_view value = field_of(stored.summary, summary_field::value);
  stored.has_image = !field_of(value, value_field::image).empty();
  return stored;
}

}  // namespace qkv
