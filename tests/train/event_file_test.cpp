#include "train/metrics/event_file.h"

#include <doctest/doctest.h>

using namespace qkv;

namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

const EventContent content{.step = 300, .scalars = {{"loss/valid", 0.1}}, .images = {}};

}  // namespace

TEST_CASE("CRC-32C has the values of RFC 3720") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xE3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43);
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending += c;
  CHECK(crc32c(ascending) == 0x46DD794E);
}

TEST_CASE("a record is length, masked CRC, event and masked CRC, as bytes computed by hand") {
  CHECK(event_record(version_event(1.5)) ==
        from_hex("1800000000000000a37f4b22"
                 "09000000000000f83f1a0d627261696e2e4576656e743a32"
                 "2a28646c"));
}

TEST_CASE("an event is time, step and summary in the wire format of Protocol Buffers") {
  CHECK(event_of(2.5, content) ==
        from_hex("09000000000000044010ac022a130a110a0a6c6f73732f76616c696415cdcccc3d"));
}

TEST_CASE("what was written of an event is read back") {
  const std::string scalar = event_of(2.5, content);
  StoredEvent stored = stored_event(scalar);
  CHECK(stored.wall_time == 2.5);
  CHECK(stored.step == 300);
  CHECK(!stored.has_image);
  CHECK(scalar.ends_with(stored.summary));
  const std::string image =
      event_of(1, {.step = 7, .scalars = {}, .images = {{"attention/0", 2, 3, "png"}}});
  stored = stored_event(image);
  CHECK(stored.step == 7);
  CHECK(stored.has_image);
}

TEST_CASE("a file cut short anywhere has the events before the cut") {
  const std::string first = event_record(version_event(1.5)),
                    file = first + event_record(event_of(2.5, content));
  for (std::size_t length = 0; length < file.size(); ++length) {
    CAPTURE(length);
    CHECK(events_in(std::string_view(file).substr(0, length)).size() ==
          (length < first.size() ? 0 : 1));
  }
  const auto events = events_in(file);
  REQUIRE(events.size() == 2);
  CHECK(events[1] == event_of(2.5, content));
}

TEST_CASE("a file with any bit flipped has the events before it") {
  const std::string first = event_record(version_event(1.5)),
                    file = first + event_record(event_of(2.5, content));
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    CAPTURE(bit);
    CHECK(events_in(damaged).size() == (bit / 8 < first.size() ? 0 : 1));
  }
}

TEST_CASE("an event whose bytes are no message, or end early, is read without a crash") {
  const std::string event =
      event_of(2.5, {.step = 7, .scalars = {}, .images = {{"attention/0", 2, 3, "png"}}});
  for (std::size_t length = 0; length < event.size(); ++length)
    CHECK(stored_event(std::string_view(event).substr(0, length)).summary.empty());
  CHECK(stored_event(std::string(20, '\xFF')).step == 0);
}
