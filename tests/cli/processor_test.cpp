#include "cli/processor.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/error.h"
#include "tests/support/errors.h"

using namespace qkv;

TEST_CASE(
    "a portable build gives way to the highest level that runs, one for its machine to none") {
  const std::vector<std::string_view> able = {"x86-64-v4", "x86-64-v2"};
  CHECK(chosen_level("x86-64-v2", "", able) == "x86-64-v4");
  CHECK(chosen_level("x86-64-v2", "x86-64-v2", able) == "x86-64-v2");
  CHECK(chosen_level("native", "", able) == "native");
  CHECK(chosen_level("native", "x86-64-v4", able) == "x86-64-v4");
  CHECK(chosen_level("native", "native", {}) == "native");
}

TEST_CASE("a level that is not installed or does not run here is refused by name") {
  const std::vector<std::string_view> able = {"x86-64-v2"};
  CHECK(error_of<UserError>([&] { chosen_level("x86-64-v2", "x86-64-v3", able); }) ==
        "QKV_CPU is x86-64-v3, and this processor and this installation have x86-64-v2");
}
