#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace qkv {

/// Base of every exception that qkv throws. The message says what, where, got and
/// expected and, where there is one, a fix.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Operands of incompatible shapes.
struct ShapeError : Error {
  using Error::Error;
};

/// An axis, row or token id outside its range.
struct IndexError : Error {
  using Error::Error;
};

/// An argument outside its domain, such as a dropout probability of 1.
struct ValueError : Error {
  using Error::Error;
};

/// Operands of different or unsupported dtypes.
struct TypeError : Error {
  using Error::Error;
};

/// Invalid input of the user: an option, a config, a data file or a checkpoint. The program
/// exits with code 2.
struct UserError : Error {
  using Error::Error;
};

/// A corrupt file, or one that the system fails to read or write. The program exits with code 1.
struct FileError : Error {
  using Error::Error;
};

/// Throws `E` when `ok` is false. The text is formatted only then.
template <class E = ShapeError, class... Args>
void require(bool ok, fmt::format_string<const Args&...> text, const Args&... args) {
  if (!ok) throw E(fmt::format(text, args...));
}

}  // namespace qkv
