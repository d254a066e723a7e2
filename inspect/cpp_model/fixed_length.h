#pragma once

#include "inspect/cpp_model/layers.h"

namespace qkv_model {

/// A feed-forward network over all positions (after Bengio et al. 2003); missing tokens are zeros.
struct FixedLength {
  /// One vector for each token, [time, width].
  Matrix operator()(const Ids& ids) const {
    Matrix x = embedded(ids);
    const Matrix text = x;
    x.values.resize(description().max_length * x.width);
    x.width = x.values.size();
    x = feed_forward(x);
    x.values.resize(text.values.size());
    x.width = text.width;
    return x;
  }
  Matrix sentence(const Matrix& x) const { return mean_of(x); }

  FeedForward feed_forward{"feed_forward"};
};

}  // namespace qkv_model
