#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace qkv::report {

/// Base64 (RFC 4648) of attention weights in [0, 1], a byte each: the square root, which resolves
/// small weights.
std::string encoded_weights(std::span<const double> weights);

/// Base64 of values as signed bytes from -127 for -`largest` to 127 for `largest`.
std::string encoded_signed(std::span<const double> values, double largest);

/// Base64 of little-endian float32.
std::string encoded_floats(std::span<const float> values);

/// Base64 of bytes.
std::string encoded_bytes(std::string_view bytes);

/// Base64 of `bytes` compressed by gzip (RFC 1952).
std::string encoded_gzip(std::string_view bytes);

/// Characters of `encoded_gzip`.
std::size_t encoded_size(std::string_view bytes);

/// Text for HTML: & < > " become entities.
std::string html_text(std::string_view text);

}  // namespace qkv::report
