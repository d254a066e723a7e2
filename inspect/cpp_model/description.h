#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace qkv_model {

/// A parameter by its path in the checkpoint; a vector has one row.
struct Parameter {
  std::string_view path;
  std::size_t rows, columns;
  bool int8 = false;  ///< integers, of which each row has a scale
};

/// The activation between the two layers of a feed-forward network.
enum class Activation { gelu_tanh, gelu, relu, relu_squared };

/// All that `qkv export` writes of a model. Texts in base64 come in lines.
struct Description {
  std::size_t width = 0, layers = 1, heads = 1, max_length = 0;
  bool scale = true;       ///< attention scores are divided by sqrt(width / heads)
  bool norm_last = false;  ///< norms come after each residual sum, rather than before
  double norm_epsilon = 1e-5;
  Activation activation = Activation::gelu_tanh;
  bool sinusoidal = false, rotary = false;  ///< kinds of positions that have no parameters
  bool causal = false;                      ///< tokens attend to earlier ones alone
  bool lower_case = false;
  std::size_t ngrams = 1;  ///< length of the longest n-gram of words
  bool truncate = false;   ///< texts that are too long are cut
  bool tags = false;       ///< every word has a label

  std::vector<std::string_view> tokens, labels;
  std::size_t reserved = 2;  ///< tokens that no text spells, padding and the unknown one; or 0
  std::vector<std::string_view> merges;   ///< of byte-level tokens, each with a space between two
  std::vector<std::string_view> targets;  ///< the words whose senses the labels are

  /// Tables of code points, in UTF-8 and base64; of those below, the ones that the tokens need.
  /// First and last of the ranges with a property:
  std::vector<std::string_view> white_space, marks;                             // of words
  std::vector<std::string_view> left_out, separate, accents, cased, ignorable;  // of WordPiece
  std::vector<std::string_view> letters, numbers, spaces;                       // of byte-level
  /// A composed character and the two that it consists of; a character that is always decomposed,
  /// likewise, or with one and 0; first and last of ranges and their combining class.
  std::vector<std::string_view> composed, decomposed, classes;
  std::vector<std::string_view> lower;      ///< a character and the same in lower case
  std::vector<std::string_view> printable;  ///< the character of each byte in byte-level tokens

  std::vector<Parameter> parameters;
  std::vector<std::string_view> weights;   ///< float32, little-endian, in base64; scales of rows
  std::vector<std::string_view> integers;  ///< int8, in base64
};

/// The model of this header.
inline const Description& description();

/// The bytes that lines of base64 stand for; each line but the last has full groups of four.
inline std::string bytes_of(const std::vector<std::string_view>& lines) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::uint32_t values[256] = {};
  for (std::size_t i = 0; i < digits.size(); ++i)
    values[static_cast<unsigned char>(digits[i])] = static_cast<std::uint32_t>(i);
  std::string bytes;
  for (const std::string_view line : lines) {
    std::uint32_t bits = 0, count = 0;
    for (const char c : line) {
      if (c == '=') break;
      bits = bits << 6 | values[static_cast<unsigned char>(c)];
      count += 6;
      if (count < 8) continue;
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return bytes;
}

/// The weights of a parameter by row; null where the model has no such parameter.
struct Weights {
  const float* values = nullptr;
  std::size_t rows = 0, columns = 0;

  explicit operator bool() const { return values != nullptr; }
  const float* row(std::size_t i) const { return values + i * columns; }
};

/// Lines of base64 as float32.
inline std::vector<float> floats_of(const std::vector<std::string_view>& lines) {
  const std::string bytes = bytes_of(lines);
  std::vector<float> values(bytes.size() / 4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t bits = 0;
    for (std::size_t byte = 4; byte-- > 0;)
      bits = bits << 8 | static_cast<unsigned char>(bytes[4 * i + byte]);
    std::memcpy(&values[i], &bits, sizeof bits);
  }
  return values;
}

/// All weights, decoded at the first call: float32, or int8 times the scale of the row.
inline const std::vector<float>& all_weights() {
  static const std::vector<float> decoded = [] {
    const std::vector<float> floats = floats_of(description().weights);
    const std::string integers = bytes_of(description().integers);
    std::vector<float> values;
    values.reserve(floats.size() + integers.size());
    auto next = floats.begin();
    auto integer = integers.begin();
    for (const Parameter& parameter : description().parameters)
      for (std::size_t row = 0; row < parameter.rows; ++row) {
        const float scale = parameter.int8 ? *next++ : 1;
        for (std::size_t i = 0; i < parameter.columns; ++i)
          values.push_back(parameter.int8 ? scale * static_cast<signed char>(*integer++) : *next++);
      }
    return values;
  }();
  return decoded;
}

inline Weights weights_of(std::string_view path) {
  std::size_t begin = 0;
  for (const Parameter& parameter : description().parameters) {
    if (parameter.path == path)
      return {all_weights().data() + begin, parameter.rows, parameter.columns};
    begin += parameter.rows * parameter.columns;
  }
  return {};
}

}  // namespace qkv_model
