#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

/// One step of a cell for one sequence: the gates' inputs i and h, [gates, hidden], and the states
/// h and c, which change.
using Cell = void (*)(const Array& i, const Array& h, Array& state, Array& memory);

void rnn_cell(const Array& i, const Array& h, Array& state, Array&) {
  state = xt::tanh(xt::view(i, 0) + xt::view(h, 0));
}

/// A gate, which kernels may limit to what a sigmoid of 87 gives.
Scalar gate(const Scalar& x) {
  Scalar y = sigmoid(x);
  y.number.loosen(4 * format_of(x.dtype()).smallest_normal / format_of(x.dtype()).unit);
  return y;
}

void gru_cell(const Array& i, const Array& h, Array& state, Array&) {
  const Array r = map(gate, xt::view(i, 0) + xt::view(h, 0)),
              z = map(gate, xt::view(i, 1) + xt::view(h, 1));
  state = (Real{1} - z) * xt::tanh(xt::view(i, 2) + r * xt::view(h, 2)) + z * state;
}

void lstm_cell(const Array& i, const Array& h, Array& state, Array& memory) {
  const Array x = i + h;
  memory =
      map(gate, xt::view(x, 1)) * memory + map(gate, xt::view(x, 0)) * xt::tanh(xt::view(x, 2));
  state = map(gate, xt::view(x, 3)) * xt::tanh(memory);
}

/// x W^T + b of each gate, [gates, hidden]. Biases may be added in any order.
Array products(const Array& x, const Array& weight, const Array& bias, std::size_t hidden) {
  Array y = map(
      [](const Scalar& product, const Scalar& b) {
        Scalar sum = product + b;
        if (b.number.finite()) sum.number.loosen(std::fabs(b.value()));
        return sum;
      },
      linear(x, weight, nullptr), bias);
  y.reshape({y.size() / hidden, hidden});
  return y;
}

/// The states; with an initial state, in[5] and for an lstm in[6], behind those of each sequence
/// its last state.
Array states(const Arrays& in, const Indices& lengths, bool reverse, Cell cell) {
  const Array& x = in[0];
  const std::size_t time = x.shape(1), hidden = in[2].shape(1), more = in.size() - 5;
  const Array none(Sizes{hidden}, zero(dtype_of(x)));
  Array y(Sizes{x.shape(0), time + more, hidden}, zero(dtype_of(x)));
  for (std::size_t n = 0; n < x.shape(0); ++n) {
    Array state = none, memory = none;
    if (more > 0) state = xt::view(in[5], n);
    if (more > 1) memory = xt::view(in[6], n);
    const auto length = lengths.size() ? static_cast<std::size_t>(lengths.data()[n]) : time;
    for (std::size_t step = 0; step < length; ++step) {
      const std::size_t t = reverse ? length - 1 - step : step;
      cell(products(xt::view(x, n, t), in[1], in[3], hidden), products(state, in[2], in[4], hidden),
           state, memory);
      xt::view(y, n, t) = state;
    }
    if (more > 0) xt::view(y, n, time) = state;
    if (more > 1) xt::view(y, n, time + 1) = memory;
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
