#include "tests/core/reference/reference.h"

namespace qkv::tests::reference {
namespace {

struct State {
  Array h, c;
};
/// The state after a step, from the gates' inputs i = x W^T + b and h = h' W^T + b.
using Cell = State (*)(const Array& i, const Array& h, const State& before);

/// Gate `index` of a vector of gates as wide as the state.
Array gate(const Array& gates, const State& state, int index) {
  const auto width = static_cast<int>(state.h.size());
  return part(gates, 0, index * width, (index + 1) * width);
}

State rnn_cell(const Array& i, const Array& h, const State& before) {
  return {xt::tanh(i + h), before.c};
}

State gru_cell(const Array& i, const Array& h, const State& before) {
  const Array r = sigmoid(gate(i, before, 0) + gate(h, before, 0));
  const Array z = sigmoid(gate(i, before, 1) + gate(h, before, 1));
  const Array n = xt::tanh(gate(i, before, 2) + r * gate(h, before, 2));
  return {(1 - z) * n + z * before.h, before.c};
}

State lstm_cell(const Array& i, const Array& h, const State& before) {
  const Array gates = i + h;
  const Array input = sigmoid(gate(gates, before, 0)), forget = sigmoid(gate(gates, before, 1));
  const Array candidate = xt::tanh(gate(gates, before, 2));
  const Array output = sigmoid(gate(gates, before, 3));
  const Array c = forget * before.c + input * candidate;
  return {output * xt::tanh(c), c};
}

struct Run {
  Cell cell;
  bool reverse = false;
  std::vector<std::size_t> lengths = {4, 0, 2};
  std::size_t last_states = 0;  ///< how many rows of last states follow the states of a sequence
};

/// Inputs x, W_ih, W_hh, b_ih, b_hh and, where they are given, the initial h and c.
Array states(const Arrays& in, const Run& run) {
  const std::size_t batch = in[0].shape(0), time = in[0].shape(1), width = in[2].shape(1);
  const auto initial = [&](std::size_t input, std::size_t b) -> Array {
    if (input >= in.size()) return filled({width}, 0);
    return xt::view(in[input], b);
  };
  Array y = filled({batch, time + run.last_states, width}, 0);
  for (std::size_t b = 0; b < batch; ++b) {
    State state{initial(5, b), initial(6, b)};
    for (std::size_t step = 0; step < run.lengths[b]; ++step) {
      const std::size_t t = run.reverse ? run.lengths[b] - 1 - step : step;
      const Array x = xt::view(in[0], b, t);
      const Array i = sum_over(in[1] * x, {1}) + in[3], h = sum_over(in[2] * state.h, {1}) + in[4];
      state = run.cell(i, h, state);
      xt::view(y, b, t) = state.h;
    }
    if (run.last_states > 0) xt::view(y, b, time) = state.h;
    if (run.last_states > 1) xt::view(y, b, time + 1) = state.c;
  }
  return y;
}

Oracle recurrent(const Run& run) {
  return [=](const Arrays& x) { return states(x, run); };
}

}  // namespace

const Oracles& recurrent_oracles() {
  static const Oracles all = {
      {"rnn: padding", recurrent({.cell = rnn_cell})},
      {"rnn: reverse, padding", recurrent({.cell = rnn_cell, .reverse = true})},
      {"rnn: size 1", recurrent({.cell = rnn_cell, .lengths = {1}})},
      {"rnn: state, padding", recurrent({.cell = rnn_cell, .last_states = 1})},
      {"rnn: state, reverse, padding",
       recurrent({.cell = rnn_cell, .reverse = true, .last_states = 1})},
      {"gru: padding", recurrent({.cell = gru_cell})},
      {"gru: reverse, padding", recurrent({.cell = gru_cell, .reverse = true})},
      {"gru: state, padding", recurrent({.cell = gru_cell, .last_states = 1})},
      {"gru: state, reverse, padding",
       recurrent({.cell = gru_cell, .reverse = true, .last_states = 1})},
      {"lstm: padding", recurrent({.cell = lstm_cell})},
      {"lstm: reverse, padding", recurrent({.cell = lstm_cell, .reverse = true})},
      {"lstm: state, padding", recurrent({.cell = lstm_cell, .last_states = 2})},
      {"lstm: state, reverse, padding",
       recurrent({.cell = lstm_cell, .reverse = true, .last_states = 2})},
      {"lstm: last state from zeros, padding", recurrent({.cell = lstm_cell, .last_states = 2})},
  };
  return all;
}

}  // namespace qkv::tests::reference
