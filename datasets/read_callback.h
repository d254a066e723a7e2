#pragma once

#include <string>
#include <string_view>

namespace qkv {

/// Hooks of reading data, to show progress and what was done to them. The defaults do nothing.
class ReadCallback {
 public:
  virtual ~ReadCallback() = default;

  /// A few times for each MiB of a file: what is done, as "reading train.tsv", and the fraction
  /// that is done.
  virtual void on_reading([[maybe_unused]] std::string_view what,
                          [[maybe_unused]] double fraction) {}
  /// A line for the user.
  virtual void on_message([[maybe_unused]] const std::string& line) {}
};

}  // namespace qkv
