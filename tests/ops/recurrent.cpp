#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

using Row = std::vector<Scalar>;

/// One step of a cell for one sequence: the gates' inputs i and h, the states h and c, which
/// change.
using Cell = void (*)(const Row& i, const Row& h, Row& state, Row& memory);

void rnn_cell(const Row& i, const Row& h, Row& state, Row&) {
  for (std::size_t j = 0; j < state.size(); ++j) state[j] = tanh(i[j] + h[j]);
}

/// A gate, which kernels may limit to what a sigmoid of 87 gives.
Scalar gate(const Scalar& x) {
  Scalar y = sigmoid(x);
  y.number.loosen(4 * format_of(x.dtype()).smallest_normal / format_of(x.dtype()).unit);
  return y;
}

void gru_cell(const Row& i, const Row& h, Row& state, Row&) {
  const std::size_t n = state.size();
  for (std::size_t j = 0; j < n; ++j) {
    const Scalar r = gate(i[j] + h[j]), z = gate(i[n + j] + h[n + j]);
    const Scalar candidate = tanh(i[2 * n + j] + r * h[2 * n + j]);
    state[j] = (1 - z) * candidate + z * state[j];
  }
}

void lstm_cell(const Row& i, const Row& h, Row& state, Row& memory) {
  const std::size_t n = state.size();
  for (std::size_t j = 0; j < n; ++j) {
    const auto x = [&](std::size_t g) { return i[g * n + j] + h[g * n + j]; };
    memory[j] = gate(x(1)) * memory[j] + gate(x(0)) * tanh(x(2));
    state[j] = gate(x(3)) * tanh(memory[j]);
  }
}

/// x W^T + b of each gate. Biases may be added in any order.
Row products(std::span<const Scalar> x, const Array& weight, const Array& bias, DType dtype) {
  Row y;
  for (Index o = 0; o < weight.shape[0]; ++o)
    y.push_back(dot(x, row(weight, o, weight.shape[1]), dtype) + bias[o]);
  for (Index o = 0; o < weight.shape[0]; ++o)
    if (bias[o].number.finite())
      y[static_cast<std::size_t>(o)].number.loosen(std::fabs(bias[o].value()));
  return y;
}

/// The states; with an initial state, in[5] and for an lstm in[6], behind those of each sequence
/// its last state.
Array states(const Arrays& in, const Indices& lengths, bool reverse, Cell cell) {
  const Array& x = in[0];
  const DType dtype = dtype_in(in);
  const Index time = x.shape[1], hidden = in[2].shape[1];
  const Index more = std::ssize(in) - 5, rows = time + more;
  Array y{{x.shape[0], rows, hidden}, {}};
  y.scalars.resize(static_cast<std::size_t>(y.size()), zero(dtype));
  for (Index n = 0; n < x.shape[0]; ++n) {
    const Index length = lengths.size() ? lengths.data()[static_cast<std::size_t>(n)] : time;
    const auto initial = [&](std::size_t i) {
      if (i >= in.size()) return Row(static_cast<std::size_t>(hidden), zero(dtype));
      const auto given = row(in[i], n, hidden);
      return Row(given.begin(), given.end());
    };
    Row state = initial(5), memory = initial(6);
    for (Index step = 0; step < length; ++step) {
      const Index t = reverse ? length - 1 - step : step;
      cell(products(row(x, n * time + t, x.shape[2]), in[1], in[3], dtype),
           products(state, in[2], in[4], dtype), state, memory);
      std::ranges::copy(state, y.scalars.begin() + (n * rows + t) * hidden);
    }
    if (more > 0) std::ranges::copy(state, y.scalars.begin() + (n * rows + time) * hidden);
    if (more > 1) std::ranges::copy(memory, y.scalars.begin() + (n * rows + time + 1) * hidden);
  }
  return y;
}

}  // namespace

Array recurrent(CellKind cell, const Arrays& in, const Indices& lengths, bool reverse) {
  switch (cell) {
    case CellKind::rnn:
      return states(in, lengths, reverse, rnn_cell);
    case CellKind::gru:
      return states(in, lengths, reverse, gru_cell);
    case CellKind::lstm:
      break;
  }
  return states(in, lengths, reverse, lstm_cell);
}

namespace {

using Run = Tensor (*)(const Tensor&, const RecurrentWeights&, const Indices&, bool);
using RunOn = RecurrentOutput (*)(const Tensor&, const RecurrentWeights&, const Indices&,
                                  const RecurrentState&, bool);

/// The states and behind them the last one.
Tensor joined(const RecurrentOutput& output) {
  std::vector<Tensor> parts = {output.states};
  for (const Tensor& last : {output.last.h, output.last.c})
    if (last) parts.push_back(reshape(last, {last.dim(0), 1, last.dim(1)}));
  return concatenate(parts, 1);
}

OpDraw recurrent(const std::string& name, Index gates, Run run, RunOn run_on, Cell cell) {
  return [=](Builder& b) {
    const Index batch = b.size(40), hidden = b.positive(batch > 6 ? 5 : 19), in = b.positive(9);
    const Index time = b.positive(batch * hidden > 60 ? 4 : 13);
    // Inputs and weights are finite: by infinity times the zeros of padding and of the first state
    // they would show what is skipped.
    const std::size_t x = b.finite({batch, time, in});
    const Index rows = gates * hidden;
    std::vector<std::size_t> operands = {x, b.finite({rows, in}), b.finite({rows, hidden}),
                                         b.like({rows}), b.like({rows})};
    const Indices lengths = b.draw.chance(60) ? b.indices({batch}, time + 1) : Indices();
    const bool reverse = b.draw.chance(40);
    const bool starts = b.draw.chance(40), memory = starts && cell == lstm_cell;
    if (starts) operands.push_back(b.finite({batch, hidden}));
    if (memory) operands.push_back(b.finite({batch, hidden}));
    const std::string call = fmt::format("{}($0, {{$1, $2, $3, $4}}, {}{}, {})", name,
                                         lengths.size() ? text(lengths) : "{}",
                                         memory   ? ", {$5, $6}"
                                         : starts ? ", {$5}"
                                                  : "",
                                         text(reverse));
    b.add(name, operands,
          {starts ? "joined(" + call + ")" : call,
           [=](const In& v) {
             const RecurrentWeights weights{v[1], v[2], v[3], v[4]};
             if (!starts) return run(v[0], weights, lengths, reverse);
             const RecurrentState initial{v[5], memory ? v[6] : Tensor()};
             return joined(run_on(v[0], weights, lengths, initial, reverse));
           },
           [=](const Arrays& v) { return states(v, lengths, reverse, cell); }});
  };
}

}  // namespace

const std::map<std::string, OpDraw>& recurrent_draws() {
  static const std::map<std::string, OpDraw> draws = {
      {"rnn", recurrent("rnn", 1, qkv::rnn, qkv::rnn, rnn_cell)},
      {"gru", recurrent("gru", 3, qkv::gru, qkv::gru, gru_cell)},
      {"lstm", recurrent("lstm", 4, qkv::lstm, qkv::lstm, lstm_cell)},
  };
  return draws;
}

}  // namespace qkv::fuzz
