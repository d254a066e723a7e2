#include "inspect/report/encode.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

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

std::string encoded_weights(std::span<const double> weights, int bits) {
  std::vector<std::uint8_t> bytes;
  const double most = bits == 16 ? 65535 : 255;
  for (const double weight : weights) {
    const double clamped = std::clamp(weight, 0.0, 1.0);
    const auto code =
        static_cast<std::uint32_t>(std::lround((bits == 16 ? clamped : std::sqrt(clamped)) * most));
    bytes.push_back(static_cast<std::uint8_t>(code & 0xFF));
    if (bits == 16) bytes.push_back(static_cast<std::uint8_t>(code >> 8));
  }
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

std::string json_for_script(std::string_view json) {
  static constexpr std::array<Escape, 1> escapes = {{{'<', "\\u003c"}}};
  return escaped(json, escapes);
}

std::string html_text(std::string_view text) {
  static constexpr std::array<Escape, 4> escapes = {
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}}};
  return escaped(text, escapes);
}

}  // namespace qkv::report
