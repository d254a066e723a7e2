#pragma once

#include <string>

namespace qkv {

/// The message that a user gets for an exception, and the exit code: 1 it failed, 2 wrong use.
struct Failure {
  std::string text;
  int exit_code;
};

/// The failure of the exception that is being handled.
Failure current_failure();

}  // namespace qkv
