#include "inspect/report/encode.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/error.h"

namespace qkv::report {
namespace {

std::string base64(std::span<const std::uint8_t> bytes) {
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? bytes[i + j] : 0u);
    for (std::size_t j = 0; j < 4; ++j)
      text += j <= count ? digits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::vector<std::uint8_t> gzip(std::string_view bytes) {
  constexpr int with_gzip_header = MAX_WBITS + 16, most_memory = 9;
  z_stream stream{};
  require<Error>(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, with_gzip_header,
                              most_memory, Z_DEFAULT_STRATEGY) == Z_OK,
                 "[report] zlib cannot begin: out of memory");
  std::vector<std::uint8_t> result(deflateBound(&stream, bytes.size()));
  std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  stream.next_in = input.data();
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = result.data();
  stream.avail_out = static_cast<uInt>(result.size());
  const int status = deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  require<Error>(status == Z_STREAM_END, "[report] zlib cannot compress {} bytes", bytes.size());
  return result;
}

using Escape = std::pair<char, std::string_view>;

std::string escaped(std::string_view text, std::span<const Escape> escapes) {
  std::string result;
  for (const char c : text) {
    const auto escape = std::ranges::find(escapes, c, &Escape::first);
    if (escape == escapes.end())
      result += c;
    else
      result += escape->second;
  }
  return result;
}

}  // namespace

std::string encoded_weights(std::span<const double> weights) {
  std::vector<std::uint8_t> bytes;
  for (const double weight : weights)
    bytes.push_back(
        static_cast<std::uint8_t>(std::lround(std::sqrt(std::clamp(weight, 0.0, 1.0)) * 255)));
  return base64(bytes);
}

std::string encoded_signed(std::span<const double> values, double largest) {
  std::vector<std::uint8_t> bytes;
  for (const double value : values) {
    const double scaled = largest > 0 ? std::clamp(value / largest, -1.0, 1.0) : 0;
    bytes.push_back(static_cast<std::uint8_t>(static_cast<std::int8_t>(std::lround(scaled * 127))));
  }
  return base64(bytes);
}

std::string encoded_floats(std::span<const float> values) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(4 * values.size());
  for (const float value : values) {
    const auto code = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<std::uint8_t>(code >> shift & 0xFF));
  }
  return base64(bytes);
}

std::string encoded_bytes(std::string_view bytes) {
  return base64({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

std::string encoded_gzip(std::string_view bytes) {
  return base64(gzip(bytes));
}

std::size_t encoded_size(std::string_view bytes) {
  return (gzip(bytes).size() + 2) / 3 * 4;
}

std::string html_text(std::string_view text) {
  static constexpr std::array<Escape, 4> escapes = {
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}}};
  return escaped(text, escapes);
}

}  // namespace qkv::report
