#pragma once

#include <string>

namespace qkv {

/// The message of the `E` that `work` throws; "no error" when it throws nothing. Other exceptions
/// pass.
template <class E, class F>
std::string error_of(F work) {
  try {
    work();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace qkv
