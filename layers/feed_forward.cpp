#include "layers/feed_forward.h"

namespace qkv {

Tensor activated(const Tensor& x, ActivationKind kind) {
  switch (kind) {
    case ActivationKind::gelu_tanh:
      return gelu(x);
    case ActivationKind::gelu:
      return gelu_exact(x);
    case ActivationKind::relu:
      return relu(x);
    case ActivationKind::relu_squared: {
      const Tensor y = relu(x);
      return y * y;
    }
  }
  throw ValueError("there is no such activation");
}

FeedForward::FeedForward(Index width, Index hidden, bool with_bias, ActivationKind activation)
    : w_1(width, hidden, with_bias, Role::feed_forward_input),
      w_2(hidden, width, with_bias, Role::feed_forward_output),
      activation(activation) {}

Tensor FeedForward::operator()(const Tensor& x) const {
  if (activation == ActivationKind::gelu_tanh) return w_2.of_gelu(w_1(x));
  return w_2(activated(w_1(x), activation));
}

std::string FeedForward::formula(std::string_view x) const {
  const bool is_gelu =
      activation == ActivationKind::gelu_tanh || activation == ActivationKind::gelu;
  return fmt::format("W_2 {}(W_1 {} + b_1){} + b_2", is_gelu ? "gelu" : "relu", x,
                     activation == ActivationKind::relu_squared ? "^2" : "");
}

SwiGlu::SwiGlu(Index width, Index hidden, bool with_bias)
    : w_1(width, hidden, with_bias, Role::feed_forward_input),
      w_2(hidden, width, with_bias, Role::feed_forward_output),
      w_3(width, hidden, with_bias, Role::feed_forward_input) {}

}  // namespace qkv
