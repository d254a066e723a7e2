#include "tests/core/op_cases.h"

namespace qkv::tests {
namespace {

const Indices lengths({4, 0, 2}, {3});
/// Where tanh saturates, 1 - y^2 cancels and float32 has no digits to compare.
const double low = -1, high = 1;

RecurrentWeights weights_of(const In& x) {
  return {x[1], x[2], x[3], x[4]};
}

std::vector<Shape> shapes(Index gates) {
  const Index rows = gates * 5;
  return {{3, 4, 2}, {rows, 2}, {rows, 5}, {rows}, {rows}};
}

/// `shapes` with an initial state of `rows` rows.
std::vector<Shape> with_state(std::vector<Shape> sizes, std::size_t rows) {
  sizes.insert(sizes.end(), rows, {3, 5});
  return sizes;
}

/// The states, and the rows of the last state after them.
Tensor joined(const RecurrentOutput& y) {
  const auto row = [](const Tensor& x) { return reshape(x, {x.dim(0), 1, -1}); };
  const Tensor all = concatenate({y.states, row(y.last.h)}, 1);
  return y.last.c ? concatenate({all, row(y.last.c)}, 1) : all;
}

}  // namespace

const std::vector<OpCase>& recurrent_cases() {
  static const std::vector<OpCase> cases = {
      {"rnn", "padding", shapes(1), [](const In& x) { return rnn(x[0], weights_of(x), lengths); },
       low, high},
      {"rnn", "reverse, padding", shapes(1),
       [](const In& x) { return rnn(x[0], weights_of(x), lengths, true); }, low, high},
      {"rnn",
       "size 1",
       {{1, 1, 1}, {1, 1}, {1, 1}, {1}, {1}},
       [](const In& x) { return rnn(x[0], weights_of(x), {}); },
       low,
       high},
      {"gru", "padding", shapes(3), [](const In& x) { return gru(x[0], weights_of(x), lengths); }},
      {"gru", "reverse, padding", shapes(3),
       [](const In& x) { return gru(x[0], weights_of(x), lengths, true); }},
      {"lstm", "padding", shapes(4),
       [](const In& x) { return lstm(x[0], weights_of(x), lengths); }},
      {"lstm", "reverse, padding", shapes(4),
       [](const In& x) { return lstm(x[0], weights_of(x), lengths, true); }},
      {"rnn", "state, padding", with_state(shapes(1), 1),
       [](const In& x) { return joined(rnn(x[0], weights_of(x), lengths, {x[5]})); }, low, high},
      {"rnn", "state, reverse, padding", with_state(shapes(1), 1),
       [](const In& x) { return joined(rnn(x[0], weights_of(x), lengths, {x[5]}, true)); }, low,
       high},
      {"gru", "state, padding", with_state(shapes(3), 1),
       [](const In& x) { return joined(gru(x[0], weights_of(x), lengths, {x[5]})); }},
      {"gru", "state, reverse, padding", with_state(shapes(3), 1),
       [](const In& x) { return joined(gru(x[0], weights_of(x), lengths, {x[5]}, true)); }},
      {"lstm", "state, padding", with_state(shapes(4), 2),
       [](const In& x) {
         return joined(lstm(x[0], weights_of(x), lengths, {x[5], x[6]}));
       }},
      {"lstm", "state, reverse, padding", with_state(shapes(4), 2),
       [](const In& x) {
         return joined(lstm(x[0], weights_of(x), lengths, {x[5], x[6]}, true));
       }},
      {"lstm", "last state from zeros, padding", shapes(4),
       [](const In& x) { return joined(lstm(x[0], weights_of(x), lengths, RecurrentState())); }},
  };
  return cases;
}

}  // namespace qkv::tests
