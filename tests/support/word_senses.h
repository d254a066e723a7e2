#pragma once

#include <filesystem>
#include <string_view>

#include "train/config/config.h"

namespace qkv {

/// Labels a (2 of 3 examples) and b; "x" is asked about.
constexpr std::string_view word_senses =
    "a\t2\tp q x q rivers s\n"
    "a\t1\tp x riverbank t u v\n"
    "b\t3\tw s t x t q\n";

/// A model of uniform attention alone, trained and tested on this file.
inline Config uniform_attention(const std::filesystem::path& file) {
  Config config;
  config.name = "tiny";
  config.task.train = config.task.test = file.string();
  config.model = {.width = 8,
                  .heads = 2,
                  .attention = AttentionKind::uniform,
                  .position = PositionKind::none,
                  .feed_forward = 0,
                  .norm = NormKind::none,
                  .embedding_std = 1};
  return config;
}

}  // namespace qkv
