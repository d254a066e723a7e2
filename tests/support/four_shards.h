#pragma once

#include "train/config/config.h"

namespace qkv {

/// A language model with four shards of unequal size in a batch.
inline Config four_shards() {
  Config config;
  config.name = "four shards";
  config.task.kind = TaskKind::language_model;
  config.task.data = QKV_SOURCE_DIR "/datasets/random/text.txt";
  config.model = {.kind = ModelKind::decoder,
                  .width = 48,
                  .layers = 2,
                  .heads = 2,
                  .feed_forward = 192,
                  .dropout = 0.2,
                  .max_length = 64};
  config.train.batch = 69;
  config.train.accumulate = 2;
  return config;
}

}  // namespace qkv
