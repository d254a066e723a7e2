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
// find the latter in `memory`. Between two steps it keeps `state_rows` rows: h and an lstm's cell
// state.

struct Rnn {
  static constexpr std::string_view name = "rnn";
  static constexpr Index state_rows = 1;
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
  static constexpr Index state_rows = 2;
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
  static constexpr Index state_rows = 1;
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
  Index last_rows = 0;  ///< rows of the last state that follow each sequence's states in the result

  /// Sequences that one thread takes together, so that its matrix products are worth their while.
  Chunks pieces() const { return {batch, std::max<Index>(batch / 16, 1)}; }
  Index position(Index step) const { return reverse ? time - 1 - step : step; }
  Index before(Index t) const { return reverse ? t + 1 : t - 1; }
  /// Whether a state comes in and the last one goes out: padding passes it on.
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

/// What a forward pass leaves for the backward pass.
struct Trace {
  Tensor gates;   ///< [B, T, G H]
  Tensor memory;  ///< [B, T, H]
  Tensor h;       ///< [B, T, H]
};

/// The state before the first step; `stride` 0: zeros, one row for all sequences.
template <class T>
struct Start {
  const T *h, *memory;
  Index stride;
};

/// The elements of a trace.
template <class T>
struct TraceData {
  T *gates, *memory, *h;
  Index columns, width;

  /// Of row `row` of [B T], with the state one step earlier.
  Moment<T> at(Index row, const T* memory_before, const T* h_before) const {
    return {gates + row * columns, memory + row * width, h + row * width, memory_before, h_before};
  }
};

template <class Cell, class T>
void run_forward(const Sequences& s, const TraceData<T>& trace, const Start<T>& start,
                 const T* hidden, const T* hidden_bias, Index begin, Index end) {
  const Index n = s.width, columns = trace.columns, own = Cell::own_gates * n,
              joint = columns - own, rows = end - begin;
  for (Index step = 0; step < s.time; ++step) {
    const Index t = s.position(step), first = begin * s.time + t,
                first_before = begin * s.time + s.before(t);
    for (Index b = 0; own && b < rows; ++b)
      std::copy_n(hidden_bias + joint, n, trace.memory + (first + b * s.time) * n);
    if (step > 0 || start.stride > 0) {
      const Matrix<const T> h = step ? Matrix<const T>{trace.h + first_before * n, s.time * n}
                                     : Matrix<const T>{start.h + begin * n, n};
      gemm(rows, joint, n, T{1}, h, {hidden, n, true}, T{1},
           Matrix<T>{trace.gates + first * columns, s.time * columns});
      if (own)
        gemm(rows, own, n, T{1}, h, {hidden + joint * n, n, true}, T{1},
             Matrix<T>{trace.memory + first * n, s.time * n});
    }
    for (Index b = 0; b < rows; ++b) {
      const Index row = first + b * s.time, before = first_before + b * s.time;
      const T* memory =
          step ? trace.memory + before * n : start.memory + (begin + b) * start.stride;
      const T* h = step ? trace.h + before * n : start.h + (begin + b) * start.stride;
      if (!s.is_padding(begin + b, t)) {
        Cell::forward(n, trace.at(row, memory, h));
      } else if (s.has_state()) {
        std::copy_n(h, n, trace.h + row * n);
        if (Cell::state_rows > 1) std::copy_n(memory, n, trace.memory + row * n);
      } else {
        std::fill_n(trace.h + row * n, n, T{0});
        std::fill_n(trace.memory + row * n, n, T{0});
      }
    }
  }
}

/// What goes into backward and comes out of it.
template <class T>
struct SequenceGradient {
  const T* dy;                ///< [B, T + last rows, H]
  T *gates, *hidden_gates;    ///< as in `MomentGradient`, [B, T, G H]
  T *start_h, *start_memory;  ///< of the initial state, [B, H]; both start at 0
};

template <class Cell, class T>
void run_backward(const Sequences& s, const TraceData<const T>& trace, const Start<T>& start,
                  const T* hidden, const SequenceGradient<T>& d_all, Index begin, Index end) {
  const Index n = s.width, columns = trace.columns, rows = end - begin;
  const Index dy_rows = s.time + s.last_rows;
  T *dh = d_all.start_h + begin * n, *dmemory = d_all.start_memory + begin * n;
  for (Index b = 0; b < rows && s.has_state(); ++b) {
    const T* last = d_all.dy + ((begin + b) * dy_rows + s.time) * n;
    std::copy_n(last, n, dh + b * n);
    if (s.last_rows > 1) std::copy_n(last + n, n, dmemory + b * n);
  }
  for (Index step = s.time - 1; step >= 0; --step) {
    const Index t = s.position(step), first = begin * s.time + t,
                first_before = begin * s.time + s.before(t);
    for (Index b = 0; b < rows; ++b) {
      const Index row = first + b * s.time, before = first_before + b * s.time;
      const MomentGradient<T> d{d_all.gates + row * columns, d_all.hidden_gates + row * columns,
                                dh + b * n, dmemory + b * n};
      if (s.is_padding(begin + b, t)) {
        std::fill_n(d.gates, columns, T{0});
        std::fill_n(d.hidden_gates, columns, T{0});
      } else {
        const T* dy = d_all.dy + ((begin + b) * dy_rows + t) * n;
        for (Index i = 0; i < n; ++i) d.h[i] += dy[i];
        const Index at_start = (begin + b) * start.stride;
        Cell::backward(n,
                       trace.at(row, step ? trace.memory + before * n : start.memory + at_start,
                                step ? trace.h + before * n : start.h + at_start),
                       d);
      }
    }
    if (step > 0 || start.stride > 0)
      gemm(rows, n, columns, T{1}, {d_all.hidden_gates + first * columns, s.time * columns},
           {hidden, n}, T{1}, Matrix<T>{dh, n});
  }
}

/// h of the step before at every time.
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
    const T *h = elements(trace.h, y), *memory = elements(trace.memory, y);
    for (Index b = 0; b < s.batch; ++b) {
      const Index row = b * s.time, length = s.length(b);
      y = std::copy_n(h + row * n, length * n, y);
      y = std::fill_n(y, (s.time - length) * n, T{0});
      y = std::copy_n(h + (row + last) * n, n, y);
      if (s.last_rows > 1) y = std::copy_n(memory + (row + last) * n, n, y);
    }
  });
}

/// x, or the states before each step, with zeros in padding, where they may be infinite or NaN.
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

/// `initial` as constants, with zeros in place of empty tensors; null where no state comes in: then
/// one row of zeros serves all sequences.
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

/// The states [B, T, H] or, from an `initial` state, what `with_last_state` makes of them.
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
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const TraceData<T> data = data_of<T>(trace);
    const Start<T> from = data_of<T>(start, s);
    const T *w = hidden.data<T>().data(), *b = bias.data<T>().data();
    parallel_for(s.pieces(), [&, w, b](Index begin, Index end) {
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
        Tensor dhidden = Cell::own_gates ? Tensor::empty(flat, dy.dtype()) : dgates;
        Tensor dh = Tensor::zeros({s.batch, s.width}, dy.dtype());
        Tensor dmemory = Tensor::zeros({s.batch, s.width}, dy.dtype());
        dispatch(dy.dtype(), [&](auto zero) {
          using T = decltype(zero);
          const TraceData<const T> data = data_of<T>(trace);
          const Start<T> from = data_of<T>(start, s);
          const T* w = hidden.data<T>().data();
          // Of some cells dgates and dhidden are the same.
          const auto to = [](Tensor& d) { return d.shared_mutable_data<T>().data(); };
          const SequenceGradient<T> d{dy.data<T>().data(), to(dgates), to(dhidden), to(dh),
                                      to(dmemory)};
          parallel_for(s.pieces(), [&, w](Index begin, Index end) {
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
        inputs.add(6, std::move(dmemory));
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
