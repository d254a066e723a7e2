#pragma once

#include "core/error.h"

namespace qkv {

/// A file that is damaged, or that the system cannot read to its end or write. The program exits
/// with code 1.
struct FileError : Error {
  using Error::Error;
};

}  // namespace qkv
