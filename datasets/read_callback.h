#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qkv {

/// Hooks of reading data and working on them, to show progress and what was done to them. The
/// defaults do nothing.
class ReadCallback {
 public:
  virtual ~ReadCallback() = default;

  /// A few times for each MiB of a file: what is done, as "reading train.tsv", and the fraction
  /// that is done.
  virtual void on_reading([[maybe_unused]] std::string_view what,
                          [[maybe_unused]] double fraction) {}
  /// Before item `i` of `count`: the same of what is done with each, as "attending".
  void on_item(std::string_view what, std::size_t i, std::size_t count) {
    on_reading(what, static_cast<double>(i) / static_cast<double>(count));
  }
  /// A line for the user.
  virtual void on_message([[maybe_unused]] const std::string& line) {}
};

}  // namespace qkv
