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
  };
  return cases;
}

}  // namespace qkv::tests
