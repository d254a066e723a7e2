#pragma once

#include <string>

namespace qkv {

/// What the user is told of an exception, and the exit code: 1 it failed, 2 wrong use.
struct Failure {
  std::string text;
  int exit_code;
};

/// Of the exception that is being handled.
Failure current_failure();

}  // namespace qkv
