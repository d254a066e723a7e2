#include "inspect/event_file.h"

#include <doctest/doctest.h>

using namespace qkv;

namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

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
  CHECK(scalar_event(2.5, 300, {{"loss/valid", 0.1}}) ==
        from_hex("09000000000000044010ac022a130a110a0a6c6f73732f76616c696415cdcccc3d"));
}
