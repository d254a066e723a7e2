#include "layers/feed_forward.h"

namespace qkv {

FeedForward::FeedForward(Index width, Index hidden, Random& random, bool with_bias)
    : w_1(width, hidden, random, with_bias), w_2(hidden, width, random, with_bias) {}

}  // namespace qkv
