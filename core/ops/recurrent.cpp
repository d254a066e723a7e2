#include "core/kernels/gemm.h"
#include "core/kernels/math.h"
#include "core/ops.h"
#include "core/ops/make.h"

namespace qkv {
namespace {

using kernels::gemm;
using kernels::Matrix;

/// One sequence at one time: gates [G H], and of width H what the cell remembers and puts out, now
/// and one step before.
template <class T>
struct Moment {
  T *gates, *memory, *h;
  const T *memory_before, *h_before;
};

/// Derivatives at one time. `h` and `memory` hold those of this step's state and are replaced by
/// what the cell hands to the step before, apart from what flows through the hidden weights.
template <class T>
struct MomentGradient {
  T* gates;         ///< written: by the gates' inputs x W_ih^T + b_ih
  T* hidden_gates;  ///< written: by h_before W_hh^T + b_hh
  T *h, *memory;
};

template <class T>
T sigmoid(T v) {
  return 1 / (1 + math::exp(-v));
}

// A cell turns the sums of its gates into what they let through, in place, and computes its state.
// The last `own_gates` of its gates do not add up the input's and the hidden state's share, but
// find the latter in `memory`.

struct Rnn {
  static constexpr std::string_view name = "rnn";
  static constexpr Index gates = 1, own_gates = 0;

  template <class T>
  static void forward(Index n, const Moment<T>& at) {
    for (Index i = 0; i < n; ++i) at.h[i] = math::tanh(at.gates[i]);
  }
  template <class T>
  static void backward(Index n, const Moment<const T>& at, const MomentGradient<T>& d) {
    for (Index i = 0; i < n; ++i) {
      d.gates[i] = d.h[i] * (1 - at.h[i] * at.h[i]);
      d.h[i] = 0;
    }
  }
};

struct Lstm {
  static constexpr std::string_view name = "lstm";
  static constexpr Index gates = 4, own_gates = 0;

  template <class T>
  static void forward(Index n, const Moment<T>& at) {
    T *in = at.gates, *forget = in + n, *candidate = forget + n, *out = candidate + n;
    for (Index i = 0; i < n; ++i) {
      in[i] = sigmoid(in[i]);
      forget[i] = sigmoid(forget[i]);
      candidate[i] = math::tanh(candidate[i]);
      out[i] = sigmoid(out[i]);
      at.memory[i] = forget[i] * at.memory_before[i] + in[i] * candidate[i];
      at.h[i] = out[i] * math::tanh(at.memory[i]);
    }
  }
  template <class T>
  static void backward(Index n, const Moment<const T>& at, const MomentGradient<T>& d) {
    const T *in = at.gates, *forget = in + n, *candidate = forget + n, *out = candidate + n;
    for (Index i = 0; i < n; ++i) {
      const T bounded = math::tanh(at.memory[i]);
      const T dc = d.memory[i] + d.h[i] * out[i] * (1 - bounded * bounded);
      d.gates[i] = dc * candidate[i] * in[i] * (1 - in[i]);
      d.gates[n + i] = dc * at.memory_before[i] * forget[i] * (1 - forget[i]);
      d.gates[2 * n + i] = dc * in[i] * (1 - candidate[i] * candidate[i]);
      d.gates[3 * n + i] = d.h[i] * bounded * out[i] * (1 - out[i]);
      d.memory[i] = dc * forget[i];
      d.h[i] = 0;
    }
  }
};

struct Gru {
  static constexpr std::string_view name = "gru";
  static constexpr Index gates = 3, own_gates = 1;

  template <class T>
  static void forward(Index n, const Moment<T>& at) {
    T *reset = at.gates, *update = reset + n, *candidate = update + n;
    for (Index i = 0; i < n; ++i) {
      reset[i] = sigmoid(reset[i]);
      update[i] = sigmoid(update[i]);
      candidate[i] = math::tanh(candidate[i] + reset[i] * at.memory[i]);
      at.h[i] = (1 - update[i]) * candidate[i] + update[i] * at.h_before[i];
    }
  }
  template <class T>
  static void backward(Index n, const Moment<const T>& at, const MomentGradient<T>& d) {
    const T *reset = at.gates, *update = reset + n, *candidate = update + n;
    for (Index i = 0; i < n; ++i) {
      const T dn = d.h[i] * (1 - update[i]) * (1 - candidate[i] * candidate[i]);
      d.gates[i] = dn * at.memory[i] * reset[i] * (1 - reset[i]);
      d.gates[n + i] = d.h[i] * (at.h_before[i] - candidate[i]) * update[i] * (1 - update[i]);
      d.gates[2 * n + i] = dn;
      d.hidden_gates[i] = d.gates[i];
      d.hidden_gates[n + i] = d.gates[n + i];
      d.hidden_gates[2 * n + i] = dn * reset[i];
      d.h[i] *= update[i];
    }
  }
};

/// Sizes of one call, and in which order it goes through time.
struct Sequences {
  Index batch, time, width;
  Indices lengths;
  bool reverse;

  /// Sequences that one thread takes together, so that its matrix products are worth their while.
  Pieces pieces() const { return {batch, std::max<Index>(batch / 16, 1)}; }
  Index position(Index step) const { return reverse ? time - 1 - step : step; }
  Index before(Index t) const { return reverse ? t + 1 : t - 1; }
  bool is_padding(Index b, Index t) const {
    return lengths.size() && t >= lengths.data()[static_cast<std::size_t>(b)];
  }
};

template <class Cell>
Sequences checked(const Tensor& x, const RecurrentWeights& w, const Indices& lengths,
                  bool reverse) {
  for (const Tensor* weight : {&w.input, &w.hidden, &w.input_bias, &w.hidden_bias})
    require_same_dtype(Cell::name, x, *weight);
  const Index width = w.hidden.rank() == 2 ? w.hidden.dim(1) : 0, rows = Cell::gates * width;
  require(x.rank() == 3 && x.dim(1) > 0 && width > 0, "[{}] needs x (B, T, I), got {}", Cell::name,
          x.shape());
  require(w.input.shape() == Shape{rows, x.dim(2)} && w.hidden.shape() == Shape{rows, width} &&
              w.input_bias.shape() == Shape{rows} && w.hidden_bias.shape() == Shape{rows},
          "[{}] input {} needs weights ({}H, {}), ({}H, H) and biases ({}H), got {}, {}, {} and {}",
          Cell::name, x.shape(), Cell::gates, x.dim(2), Cell::gates, Cell::gates, w.input.shape(),
          w.hidden.shape(), w.input_bias.shape(), w.hidden_bias.shape());
  require(lengths.size() == 0 || lengths.shape() == Shape{x.dim(0)},
          "[{}] lengths {} do not fit a batch of {}", Cell::name, lengths.shape(), x.dim(0));
  for (const auto length : lengths.data())
    require<IndexError>(length >= 0 && length <= x.dim(1), "[{}] length {} is outside [0, {}]",
                        Cell::name, length, x.dim(1));
  return {x.dim(0), x.dim(1), width, lengths, reverse};
}

/// What a forward pass leaves for the backward pass.
struct Trace {
  Tensor gates;   ///< [B, T, G H]
  Tensor memory;  ///< [B, T, H]
  Tensor h;       ///< [B, T, H]
};

/// The numbers of a trace.
template <class T>
struct TraceData {
  T *gates, *memory, *h;
  Index columns, width;

  /// Of row `row` of [B T], with row `before` one step earlier, or a state of zeros.
  Moment<T> at(Index row, const T* memory_before, const T* h_before) const {
    return {gates + row * columns, memory + row * width, h + row * width, memory_before, h_before};
  }
};

template <class Cell, class T>
void run_forward(const Sequences& s, const TraceData<T>& trace, const T* hidden,
                 const T* hidden_bias, Index begin, Index end) {
  const Index n = s.width, columns = trace.columns, own = Cell::own_gates * n,
              joint = columns - own, rows = end - begin;
  const std::vector<T> zeros(static_cast<std::size_t>(n));
  for (Index step = 0; step < s.time; ++step) {
    const Index t = s.position(step), first = begin * s.time + t,
                first_before = begin * s.time + s.before(t);
    for (Index b = 0; own && b < rows; ++b)
      std::copy_n(hidden_bias + joint, n, trace.memory + (first + b * s.time) * n);
    if (step > 0) {
      const Matrix<const T> h{trace.h + first_before * n, s.time * n};
      gemm(rows, joint, n, T{1}, h, {hidden, n, true}, T{1},
           Matrix<T>{trace.gates + first * columns, s.time * columns});
      if (own)
        gemm(rows, own, n, T{1}, h, {hidden + joint * n, n, true}, T{1},
             Matrix<T>{trace.memory + first * n, s.time * n});
    }
    for (Index b = 0; b < rows; ++b) {
      const Index row = first + b * s.time, before = first_before + b * s.time;
      if (s.is_padding(begin + b, t)) {
        std::fill_n(trace.h + row * n, n, T{0});
        std::fill_n(trace.memory + row * n, n, T{0});
      } else {
        Cell::forward(n, trace.at(row, step ? trace.memory + before * n : zeros.data(),
                                  step ? trace.h + before * n : zeros.data()));
      }
    }
  }
}

template <class Cell, class T>
void run_backward(const Sequences& s, const TraceData<const T>& trace, const T* hidden, const T* dy,
                  T* dgates, T* dhidden, Index begin, Index end) {
  const Index n = s.width, columns = trace.columns, rows = end - begin;
  const std::vector<T> zeros(static_cast<std::size_t>(n));
  std::vector<T> dh(static_cast<std::size_t>(rows * n)), dmemory(dh);
  for (Index step = s.time - 1; step >= 0; --step) {
    const Index t = s.position(step), first = begin * s.time + t,
                first_before = begin * s.time + s.before(t);
    for (Index b = 0; b < rows; ++b) {
      const Index row = first + b * s.time, before = first_before + b * s.time;
      const MomentGradient<T> d{dgates + row * columns, dhidden + row * columns, &dh[0] + b * n,
                                &dmemory[0] + b * n};
      if (s.is_padding(begin + b, t)) {
        std::fill_n(d.gates, columns, T{0});
        std::fill_n(d.hidden_gates, columns, T{0});
        std::fill_n(d.h, n, T{0});
        std::fill_n(d.memory, n, T{0});
      } else {
        for (Index i = 0; i < n; ++i) d.h[i] += dy[row * n + i];
        Cell::backward(n,
                       trace.at(row, step ? trace.memory + before * n : zeros.data(),
                                step ? trace.h + before * n : zeros.data()),
                       d);
      }
    }
    if (step > 0)
      gemm(rows, n, columns, T{1}, {dhidden + first * columns, s.time * columns}, {hidden, n}, T{1},
           Matrix<T>{dh.data(), n});
  }
}

/// h of the step before at every time; zeros at the first.
Tensor shifted(const Tensor& h, const Sequences& s) {
  const Tensor start = Tensor::zeros({s.batch, 1, s.width}, h.dtype());
  return s.reverse ? concatenate({slice(h, 1, 1, s.time), start}, 1)
                   : concatenate({start, slice(h, 1, 0, s.time - 1)}, 1);
}

template <class T>
TraceData<T> data_of(Trace& trace) {
  return {trace.gates.mutable_data<T>().data(), trace.memory.mutable_data<T>().data(),
          trace.h.mutable_data<T>().data(), trace.gates.dim(2), trace.h.dim(2)};
}

template <class T>
TraceData<const T> data_of(const Trace& trace) {
  return {trace.gates.data<T>().data(), trace.memory.data<T>().data(), trace.h.data<T>().data(),
          trace.gates.dim(2), trace.h.dim(2)};
}

/// The hidden bias of the gates that add it to the input's; zeros for the others.
template <class Cell>
Tensor joint_bias(const Tensor& bias, Index width) {
  if (Cell::own_gates == 0) return bias;
  return concatenate({slice(bias, 0, 0, bias.dim(0) - width), Tensor::zeros({width}, bias.dtype())},
                     0);
}

template <class Cell>
Tensor recurrent(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
                 bool reverse) {
  const Sequences s = checked<Cell>(x, weights, lengths, reverse);
  const Tensor input = weights.input.detach(), hidden = weights.hidden.detach();
  const Tensor bias = weights.hidden_bias.detach();
  const Shape states{s.batch, s.time, s.width};
  Trace trace{
      linear(x.detach(), input, weights.input_bias.detach() + joint_bias<Cell>(bias, s.width)),
      Tensor::empty(states, x.dtype()), Tensor::empty(states, x.dtype())};
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const TraceData<T> data = data_of<T>(trace);
    const T *w = hidden.data<T>().data(), *b = bias.data<T>().data();
    parallel_for(s.pieces(), [&, w, b](Index begin, Index end) {
      run_forward<Cell>(s, data, w, b, begin, end);
    });
  });
  return record(
      Cell::name, trace.h,
      {x, weights.input, weights.hidden, weights.input_bias, weights.hidden_bias},
      [=, x = x.detach()](const Tensor& dy, InputGradients& inputs) {
        const Shape flat{s.batch * s.time, Cell::gates * s.width};
        Tensor dgates = Tensor::empty(flat, dy.dtype());
        Tensor dhidden = Cell::own_gates ? Tensor::empty(flat, dy.dtype()) : dgates;
        dispatch(dy.dtype(), [&](auto zero) {
          using T = decltype(zero);
          const TraceData<const T> data = data_of<T>(trace);
          const T *w = hidden.data<T>().data(), *from = dy.data<T>().data();
          T *dg = dgates.mutable_data<T>().data(), *dw = dhidden.mutable_data<T>().data();
          parallel_for(s.pieces(), [&, w, from, dg, dw](Index begin, Index end) {
            run_backward<Cell>(s, data, w, from, dg, dw, begin, end);
          });
        });
        const auto rows = [&](const Tensor& states_of) {
          return states_of.with_shape({flat[0], states_of.dim(2)});
        };
        inputs.add(0, [&] { return matmul(dgates, input).with_shape(x.shape()); });
        inputs.add(1, [&] { return matmul(dgates, rows(x), Transpose::first); });
        inputs.add(2, [&] { return matmul(dhidden, rows(shifted(trace.h, s)), Transpose::first); });
        inputs.add(3, [&] { return sum_to(dgates, {flat[1]}); });
        inputs.add(4, [&] { return sum_to(dhidden, {flat[1]}); });
      });
}

}  // namespace

Tensor rnn(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths, bool reverse) {
  return recurrent<Rnn>(x, weights, lengths, reverse);
}

Tensor gru(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths, bool reverse) {
  return recurrent<Gru>(x, weights, lengths, reverse);
}

Tensor lstm(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
            bool reverse) {
  return recurrent<Lstm>(x, weights, lengths, reverse);
}

}  // namespace qkv
