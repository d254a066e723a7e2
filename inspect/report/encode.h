#pragma once

#include <span>
#include <string>
#include <string_view>

namespace qkv::report {

/// Base64 (RFC 4648) of shares in [0, 1] as unsigned integers: of 16 bits, little-endian, or the
/// square roots of 8 bits, which keep small shares apart.
std::string encoded_shares(std::span<const double> shares, int bits);

/// Base64 of numbers as signed bytes from -127 for -`largest` to 127 for `largest`.
std::string encoded_signed(std::span<const double> numbers, double largest);

/// JSON that may stand in an HTML script element: no "<" in it can end the element or begin a
/// comment.
std::string json_for_script(std::string_view json);

/// Text for HTML: & < > " become entities.
std::string html_text(std::string_view text);

}  // namespace qkv::report
