#include "layers/feed_forward.h"

namespace qkv {

FeedForward::FeedForward(Index width, Index hidden, Random& random)
    : w_1(width, hidden, random), w_2(hidden, width, random) {}

}  // namespace qkv
