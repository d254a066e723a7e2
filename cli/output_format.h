#pragma once

#include <span>
#include <string_view>

namespace qkv {

struct Document;

/// A way to print the result of a command.
struct OutputFormat {
  const char* flag;  ///< that chooses it
  const char* help;
  void (*print)(const Document& document);
  void (*stream)(std::string_view text);  ///< shows text while it is generated
};

/// The first one is the default.
std::span<const OutputFormat> output_formats();

}  // namespace qkv
