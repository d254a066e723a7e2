#include "layers/feed_forward.h"

namespace qkv {

FeedForward::FeedForward(Index width, Index hidden, bool with_bias, ActivationKind activation)
    : w_1(width, hidden, with_bias, Role::feed_forward_input),
      w_2(hidden, width, with_bias, Role::feed_forward_output),
      activation(activation) {}

SwiGlu::SwiGlu(Index width, Index hidden, bool with_bias)
    : w_1(width, hidden, with_bias, Role::feed_forward_input),
      w_2(hidden, width, with_bias, Role::feed_forward_output),
      w_3(width, hidden, with_bias, Role::feed_forward_input) {}

}  // namespace qkv
