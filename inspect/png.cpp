#include "inspect/png.h"

#include <zlib.h>

#include <string_view>

#include "core/error.h"

namespace qkv {
namespace {

/// A 32-bit integer, the highest byte first.
std::string big_endian(std::uint64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((value >> shift) & 0xFF);
  return bytes;
}

/// Length, type, data and the CRC of the last two.
std::string chunk(std::string_view type, std::string_view data) {
  const std::string body = std::string(type).append(data);
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
  return big_endian(data.size()) + body + big_endian(crc);
}

std::string compressed(std::string_view data) {
  uLongf size = compressBound(data.size());
  std::string result(size, '\0');
  const int status =
      compress2(reinterpret_cast<Bytef*>(result.data()), &size,
                reinterpret_cast<const Bytef*>(data.data()), data.size(), Z_DEFAULT_COMPRESSION);
  require<Error>(status == Z_OK, "a picture cannot be compressed: {}", zError(status));
  result.resize(size);
  return result;
}

/// Each row of pixels after the number of its filter, none.
std::string scanlines(const Image& image) {
  const auto width = static_cast<std::size_t>(3 * image.width);
  std::string lines;
  for (std::size_t at = 0; at < image.rgb.size(); at += width) {
    lines += '\0';
    lines.append(reinterpret_cast<const char*>(image.rgb.data()) + at, width);
  }
  return lines;
}

}  // namespace

std::string png(const Image& image) {
  constexpr char bit_depth = 8, colour_type_rgb = 2;
  std::string header = big_endian(static_cast<std::uint64_t>(image.width)) +
                       big_endian(static_cast<std::uint64_t>(image.height));
  header.append({bit_depth, colour_type_rgb, 0, 0, 0});  // compression, filter, interlace
  return "\x89PNG\r\n\x1A\n" + chunk("IHDR", header) + chunk("IDAT", compressed(scanlines(image))) +
         chunk("IEND", "");
}

}  // namespace qkv
