#include <algorithm>

#include "core/autograd.h"
#include "core/kernels/gemm.h"
#include "core/kernels/math.h"
#include "core/ops.h"
#include "core/ops/broadcast.h"
#include "core/ops/checks.h"
#include "core/ops/create.h"
#include "core/parallel.h"

namespace qkv {
namespace {

using namespace detail;
using kernels::gemm;
using kernels::Matrix;

/// One sequence at one time step: gates [G H], the hidden state h [H] and the auxiliary values
/// [H], now and one step before. The latter are c, the cell state, of an LSTM, and of a GRU's
/// candidate n the term h' W_hn^T + b_hn, which its reset gate multiplies.
template <class T>
struct TimeStep {
  T *gates, *aux, *h;
  const T *aux_before, *h_before;
};

/// Gradients at one time step. A cell's backward reads in `h` and `aux` those of this step's state
/// and overwrites them by those of the state before, apart from the term through the hidden
/// weights.
template <class T>
struct TimeStepGradient {
  T* gates;         ///< written: with respect to x W_ih^T + b_ih
  T* hidden_gates;  ///< written: with respect to h' W_hh^T + b_hh
  T *h, *aux;
};

// A cell overwrites the sums i + h of its gates by their activations and computes its state. The
// last `separate_gates` of its gates hold i alone, and h is in `aux`. Its state has `state_rows`
// rows: h and an LSTM's cell state c.

struct Rnn {
  static constexpr std::string_view name = "rnn";
  static constexpr Index state_rows = 1;
  static constexpr Index gates = 1, separate_gates = 0;

  template <class T>
  static void forward(Index n, const TimeStep<T>& at) {
    for (Index i = 0; i < n; ++i) at.h[i] = math::tanh(at.gates[i]);
  }
  template <class T>
  static void backward(Index n, const TimeStep<const T>& at, const TimeStepGradient<T>& d) {
    for (Index i = 0; i < n; ++i) {
      d.gates[i] = d.h[i] * (1 - at.h[i] * at.h[i]);
      d.h[i] = 0;
    }
  }
};

struct Lstm {
  static constexpr std::string_view name = "lstm";
  static constexpr Index state_rows = 2;
  static constexpr Index gates = 4, separate_gates = 0;

  template <class T>
  static void forward(Index n, const TimeStep<T>& at) {
    T *in = at.gates, *forget = in + n, *candidate = forget + n, *out = candidate + n;
    for (Index i = 0; i < n; ++i) {
      in[i] = math::logistic(in[i]);
      forget[i] = math::logistic(forget[i]);
      candidate[i] = math::tanh(candidate[i]);
      out[i] = math::logistic(out[i]);
      at.aux[i] = forget[i] * at.aux_before[i] + in[i] * candidate[i];
      at.h[i] = out[i] * math::tanh(at.aux[i]);
    }
  }
  template <class T>
  static void backward(Index n, const TimeStep<const T>& at, const TimeStepGradient<T>& d) {
    const T *in = at.gates, *forget = in + n, *candidate = forget + n, *out = candidate + n;
    for (Index i = 0; i < n; ++i) {
      const T bounded = math::tanh(at.aux[i]);
      const T dc = d.aux[i] + d.h[i] * out[i] * (1 - bounded * bounded);
      d.gates[i] = dc * candidate[i] * in[i] * (1 - in[i]);
      d.gates[n + i] = dc * at.aux_before[i] * forget[i] * (1 - forget[i]);
      d.gates[2 * n + i] = dc * in[i] * (1 - candidate[i] * candidate[i]);
      d.gates[3 * n + i] = d.h[i] * bounded * out[i] * (1 - out[i]);
      d.aux[i] = dc * forget[i];
      d.h[i] = 0;
    }
  }
};

struct Gru {
  static constexpr std::string_view name = "gru";
  static constexpr Index state_rows = 1;
  static constexpr Index gates = 3, separate_gates = 1;

  template <class T>
  static void forward(Index n, const TimeStep<T>& at) {
    T *reset = at.gates, *update = reset + n, *candidate = update + n;
    for (Index i = 0; i < n; ++i) {
      reset[i] = math::logistic(reset[i]);
      update[i] = math::logistic(update[i]);
      candidate[i] = math::tanh(candidate[i] + reset[i] * at.aux[i]);
      at.h[i] = (1 - update[i]) * candidate[i] + update[i] * at.h_before[i];
    }
  }
  template <class T>
  static void backward(Index n, const TimeStep<const T>& at, const TimeStepGradient<T>& d) {
    const T *reset = at.gates, *update = reset + n, *candidate = update + n;
    for (Index i = 0; i < n; ++i) {
      const T dn = d.h[i] * (1 - update[i]) * (1 - candidate[i] * candidate[i]);
      d.gates[i] = dn * at.aux[i] * reset[i] * (1 - reset[i]);
      d.gates[n + i] = d.h[i] * (at.h_before[i] - candidate[i]) * update[i] * (1 - update[i]);
      d.gates[2 * n + i] = dn;
      d.hidden_gates[i] = d.gates[i];
      d.hidden_gates[n + i] = d.gates[n + i];
      d.hidden_gates[2 * n + i] = dn * reset[i];
      d.h[i] *= update[i];
    }
  }
};

/// Sizes of one call, and its direction in time.
struct Sequences {
  Index batch, time, width;
  Indices lengths;
  bool reverse;
  Index last_rows = 0;  ///< rows of the last state after each sequence's states in the result

  /// Chunks of sequences that are large enough to amortise their matrix products.
  Chunks chunks() const { return {batch, std::max<Index>(batch / 16, 1)}; }
  Index position(Index step) const { return reverse ? time - 1 - step : step; }
  Index before(Index t) const { return reverse ? t + 1 : t - 1; }
  /// Whether there is an initial state and the last one is a result: it is copied through padding.
  bool has_state() const { return last_rows > 0; }
  Index length(Index b) const {
    return lengths.size() ? lengths.data()[static_cast<std::size_t>(b)] : time;
  }
  bool is_padding(Index b, Index t) const { return t >= length(b); }
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

/// Inputs that forward saves for backward.
struct Trace {
  Tensor gates;  ///< [B, T, G H]
  Tensor aux;    ///< [B, T, H], see TimeStep
  Tensor h;      ///< [B, T, H]
};

/// The initial state; `stride` 0: one row of zeros for all sequences.
template <class T>
struct Start {
  const T *h, *c;
  Index stride;
};

/// The elements of a trace.
template <class T>
struct TraceData {
  T *gates, *aux, *h;
  Index columns, width;

  /// Row `row` of [B T], with the state of the step before.
  TimeStep<T> at(Index row, const T* aux_before, const T* h_before) const {
    return {gates + row * columns, aux + row * width, h + row * width, aux_before, h_before};
  }
};

template <class Cell, class T>
void run_forward(const Sequences& s, const TraceData<T>& trace, const Start<T>& start,
                 const T* hidden, const T* hidden_bias, Index begin, Index end) {
  const Index n = s.width, columns = trace.columns, separate = Cell::separate_gates * n,
              joint = columns - separate, rows = end - begin;
  for (Index step = 0; step < s.time; ++step) {
    const Index t = s.position(step), first = begin * s.time + t,
                first_before = begin * s.time + s.before(t);
    for (Index b = 0; separate && b < rows; ++b)
      std::copy_n(hidden_bias + joint, n, trace.aux + (first + b * s.time) * n);
    if (step > 0 || start.stride > 0) {
      const Matrix<const T> h = step ? Matrix<const T>{trace.h + first_before * n, s.time * n}
                                     : Matrix<const T>{start.h + begin * n, n};
      gemm(rows, joint, n, T{1}, h, {hidden, n, true}, T{1},
           Matrix<T>{trace.gates + first * columns, s.time * columns});
      if (separate)
        gemm(rows, separate, n, T{1}, h, {hidden + joint * n, n, true}, T{1},
             Matrix<T>{trace.aux + first * n, s.time * n});
    }
    for (Index b = 0; b < rows; ++b) {
      const Index row = first + b * s.time, before = first_before + b * s.time;
      const T* aux = step ? trace.aux + before * n : start.c + (begin + b) * start.stride;
      const T* h = step ? trace.h + before * n : start.h + (begin + b) * start.stride;
      if (!s.is_padding(begin + b, t)) {
        Cell::forward(n, trace.at(row, aux, h));
      } else if (s.has_state()) {
        std::copy_n(h, n, trace.h + row * n);
        if (Cell::state_rows > 1) std::copy_n(aux, n, trace.aux + row * n);
      } else {
        std::fill_n(trace.h + row * n, n, T{0});
        std::fill_n(trace.aux + row * n, n, T{0});
      }
    }
  }
}

/// Operands and results of backward.
template <class T>
struct SequenceGradient {
  const T* dy;              ///< [B, T + last rows, H]
  T *gates, *hidden_gates;  ///< as in `TimeStepGradient`, [B, T, G H]
  T *start_h, *start_c;     ///< of the initial state, [B, H]; both start at 0
};

template <class Cell, class T>
void run_backward(const Sequences& s, const TraceData<const T>& trace, const Start<T>& start,
                  const T* hidden, const SequenceGradient<T>& d_all, Index begin, Index end) {
  const Index n = s.width, columns = trace.columns, rows = end - begin;
  const Index dy_rows = s.time + s.last_rows;
  T *dh = d_all.start_h + begin * n, *dc_start = d_all.start_c + begin * n;
  for (Index b = 0; b < rows && s.has_state(); ++b) {
    const T* last = d_all.dy + ((begin + b) * dy_rows + s.time) * n;
    std::copy_n(last, n, dh + b * n);
    if (s.last_rows > 1) std::copy_n(last + n, n, dc_start + b * n);
  }
  for (Index step = s.time - 1; step >= 0; --step) {
    const Index t = s.position(step), first = begin * s.time + t,
                first_before = begin * s.time + s.before(t);
    for (Index b = 0; b < rows; ++b) {
      const Index row = first + b * s.time, before = first_before + b * s.time;
      const TimeStepGradient<T> d{d_all.gates + row * columns, d_all.hidden_gates + row * columns,
                                  dh + b * n, dc_start + b * n};
      if (s.is_padding(begin + b, t)) {
        std::fill_n(d.gates, columns, T{0});
        std::fill_n(d.hidden_gates, columns, T{0});
      } else {
        const T* dy = d_all.dy + ((begin + b) * dy_rows + t) * n;
        for (Index i = 0; i < n; ++i) d.h[i] += dy[i];
        const Index at_start = (begin + b) * start.stride;
        Cell::backward(n,
                       trace.at(row, step ? trace.aux + before * n : start.c + at_start,
                                step ? trace.h + before * n : start.h + at_start),
                       d);
      }
    }
    if (step > 0 || start.stride > 0)
      gemm(rows, n, columns, T{1}, {d_all.hidden_gates + first * columns, s.time * columns},
           {hidden, n}, T{1}, Matrix<T>{dh, n});
  }
}

/// h of the step before at every time step.
Tensor shifted(const Tensor& h, const Tensor& start, const Sequences& s) {
  const Tensor first = s.has_state() ? start : Tensor::zeros({s.batch, s.width}, h.dtype());
  const Tensor row = first.with_shape({s.batch, 1, s.width});
  return s.reverse ? concatenate({slice(h, 1, 1, s.time), row}, 1)
                   : concatenate({row, slice(h, 1, 0, s.time - 1)}, 1);
}

/// The states with zeros in padding, and the last state after them: [B, T + last rows, H].
Tensor with_last_state(const Trace& trace, const Sequences& s) {
  const Index n = s.width, last = s.position(s.time - 1);
  return create({s.batch, s.time + s.last_rows, n}, trace.h.dtype(), [&]<class T>(T* y) {
    const T *h = elements(trace.h, y), *aux = elements(trace.aux, y);
    for (Index b = 0; b < s.batch; ++b) {
      const Index row = b * s.time, length = s.length(b);
      y = std::copy_n(h + row * n, length * n, y);
      y = std::fill_n(y, (s.time - length) * n, T{0});
      y = std::copy_n(h + (row + last) * n, n, y);
      if (s.last_rows > 1) y = std::copy_n(aux + (row + last) * n, n, y);
    }
  });
}

/// x, or the states before each step, with zeros in padding, which may hold Inf or NaN.
Tensor without_padding(const Tensor& x, const Sequences& s) {
  if (s.lengths.size() == 0) return x;
  const Index width = x.dim(2);
  return create(x.shape(), x.dtype(), [&]<class T>(T* y) {
    const T* from = elements(x, y);
    for (Index b = 0; b < s.batch; ++b, from += s.time * width) {
      y = std::copy_n(from, s.length(b) * width, y);
      y = std::fill_n(y, (s.time - s.length(b)) * width, T{0});
    }
  });
}

template <class T>
TraceData<T> data_of(Trace& trace) {
  return {trace.gates.mutable_data<T>().data(), trace.aux.mutable_data<T>().data(),
          trace.h.mutable_data<T>().data(), trace.gates.dim(2), trace.h.dim(2)};
}

template <class T>
TraceData<const T> data_of(const Trace& trace) {
  return {trace.gates.data<T>().data(), trace.aux.data<T>().data(), trace.h.data<T>().data(),
          trace.gates.dim(2), trace.h.dim(2)};
}

/// The hidden bias, with zeros for separate gates.
template <class Cell>
Tensor joint_bias(const Tensor& bias, Index width) {
  if (Cell::separate_gates == 0) return bias;
  return concatenate({slice(bias, 0, 0, bias.dim(0) - width), Tensor::zeros({width}, bias.dtype())},
                     0);
}

/// `initial` as constants, with zeros in place of empty tensors; null: one row of zeros for all
/// sequences.
RecurrentState start_of(const Sequences& s, const RecurrentState* initial, DType dtype) {
  const auto given = [&](const Tensor& x) {
    return x ? x.detach() : Tensor::zeros({s.batch, s.width}, dtype);
  };
  if (initial) return {given(initial->h), given(initial->c)};
  const Tensor zeros = Tensor::zeros({s.width}, dtype);
  return {zeros, zeros};
}

template <class T>
Start<T> data_of(const RecurrentState& start, const Sequences& s) {
  return {start.h.data<T>().data(), start.c.data<T>().data(), s.has_state() ? s.width : 0};
}

template <class Cell>
void require_state(const Sequences& s, const Tensor& x, const RecurrentState& initial) {
  require(Cell::state_rows == 2 || !initial.c, "[{}] has no cell state, but one is given",
          Cell::name);
  for (const Tensor* state : {&initial.h, &initial.c}) {
    if (!*state) continue;
    require_same_dtype(Cell::name, x, *state);
    require(state->shape() == Shape{s.batch, s.width},
            "[{}] an initial state of x {} has the shape {}, got {}", Cell::name, x.shape(),
            Shape{s.batch, s.width}, state->shape());
  }
}

/// The states [B, T, H] or, from an `initial` state, the result of `with_last_state`.
template <class Cell>
Tensor recurrent(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
                 bool reverse, const RecurrentState* initial = nullptr) {
  Sequences sizes = checked<Cell>(x, weights, lengths, reverse);
  if (initial) {
    require_state<Cell>(sizes, x, *initial);
    sizes.last_rows = Cell::state_rows;
  }
  const Sequences s = sizes;
  const RecurrentState start = start_of(s, initial, x.dtype());
  const Tensor input = weights.input.detach(), hidden = weights.hidden.detach();
  const Tensor bias = weights.hidden_bias.detach();
  const Shape states{s.batch, s.time, s.width};
  Trace trace{
      linear(x.detach(), input, weights.input_bias.detach() + joint_bias<Cell>(bias, s.width)),
      Tensor::empty(states, x.dtype()), Tensor::empty(states, x.dtype())};
  dispatch(x.dtype(), [&]<class T>() {
    const TraceData<T> data = data_of<T>(trace);
    const Start<T> from = data_of<T>(start, s);
    const T *w = hidden.data<T>().data(), *b = bias.data<T>().data();
    parallel_for(s.chunks(), [&, w, b](Index begin, Index end) {
      run_forward<Cell>(s, data, from, w, b, begin, end);
    });
  });
  const RecurrentState none;
  const RecurrentState& first = initial ? *initial : none;
  return record(
      Cell::name, s.has_state() ? with_last_state(trace, s) : trace.h,
      {x, weights.input, weights.hidden, weights.input_bias, weights.hidden_bias, first.h, first.c},
      [=, x = x.detach()](const Tensor& dy, InputGradients& inputs) {
        const Shape flat{s.batch * s.time, Cell::gates * s.width};
        Tensor dgates = Tensor::empty(flat, dy.dtype());
        Tensor dhidden = Cell::separate_gates ? Tensor::empty(flat, dy.dtype()) : dgates;
        Tensor dh = Tensor::zeros({s.batch, s.width}, dy.dtype());
        Tensor dc_start = Tensor::zeros({s.batch, s.width}, dy.dtype());
        dispatch(dy.dtype(), [&]<class T>() {
          const TraceData<const T> data = data_of<T>(trace);
          const Start<T> from = data_of<T>(start, s);
          const T* w = hidden.data<T>().data();
          // Without separate gates, dgates and dhidden share their buffer.
          const auto to = [](Tensor& d) { return d.shared_mutable_data<T>().data(); };
          const SequenceGradient<T> d{dy.data<T>().data(), to(dgates), to(dhidden), to(dh),
                                      to(dc_start)};
          parallel_for(s.chunks(), [&, w](Index begin, Index end) {
            run_backward<Cell>(s, data, from, w, d, begin, end);
          });
        });
        const auto rows = [&](const Tensor& states_of) {
          return states_of.with_shape({flat[0], states_of.dim(2)});
        };
        inputs.add(0, [&] { return matmul(dgates, input).with_shape(x.shape()); });
        inputs.add(1,
                   [&] { return matmul(dgates, rows(without_padding(x, s)), Transpose::first); });
        inputs.add(2, [&] {
          return matmul(dhidden, rows(without_padding(shifted(trace.h, start.h, s), s)),
                        Transpose::first);
        });
        inputs.add(3, [&] { return sum_to(dgates, {flat[1]}); });
        inputs.add(4, [&] { return sum_to(dhidden, {flat[1]}); });
        inputs.add(5, std::move(dh));
        inputs.add(6, std::move(dc_start));
      });
}

template <class Cell>
RecurrentOutput with_state(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
                           const RecurrentState& initial, bool reverse) {
  const Tensor all = recurrent<Cell>(x, weights, lengths, reverse, &initial);
  const Index time = x.dim(1);
  const auto last = [&](Index row) {
    return reshape(slice(all, 1, time + row, time + row + 1), Shape{all.dim(0), all.dim(2)});
  };
  return {slice(all, 1, 0, time), {last(0), Cell::state_rows > 1 ? last(1) : Tensor()}};
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

RecurrentOutput rnn(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
                    const RecurrentState& initial, bool reverse) {
  return with_state<Rnn>(x, weights, lengths, initial, reverse);
}

RecurrentOutput gru(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
                    const RecurrentState& initial, bool reverse) {
  return with_state<Gru>(x, weights, lengths, initial, reverse);
}

RecurrentOutput lstm(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
                     const RecurrentState& initial, bool reverse) {
  return with_state<Lstm>(x, weights, lengths, initial, reverse);
}

}  // namespace qkv
