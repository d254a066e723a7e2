#pragma once

#include <cstddef>

#include "inspect/cpp_model/layers.h"

namespace qkv_model {

/// The embedding alone: a token has the same vector in every context.
struct StaticEmbedding {
  struct Cache {
    std::size_t length = 0;
  };

  Matrix operator()(const Ids& ids) const { return embedded(ids); }
  Matrix operator()(const Ids& ids, Cache&) const { return embedded(ids); }
  Matrix sentence(const Matrix& x) const { return mean_of(x); }
};

}  // namespace qkv_model
