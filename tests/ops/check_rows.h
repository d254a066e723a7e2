#pragma once

#include <doctest/doctest.h>

#include "tests/ops/check.h"

namespace qkv::fuzz {

/// Each of `count` cases of every row agrees with the row's formula, in float32 and float64.
inline void check_rows(const std::map<std::string, OpDraw>& rows, std::uint64_t count,
                       Values values = Values::any) {
  for (const auto& [name, draw] : rows)
    for (std::uint64_t i = 0; i < count; ++i) {
      Draw choices(5, i);
      Builder builder(choices, name, 0, values);
      draw(builder);
      const Case sample = builder.finish();
      if (sample.steps.empty()) continue;
      const auto failure = check(sample, nullptr);
      const std::string message =
          failure ? summary_of(*failure) + "\n" + code_of(sample, *failure) : "";
      CHECK(message == "");
    }
}

}  // namespace qkv::fuzz
