#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

void draw_dropout(Builder& b) {
  const double probability = b.option({0.5, 0, 0.1, 0.9});
  b.add("dropout", {b.any(0)},
        {fmt::format("dropout($0, {}, {})", text(probability), dropout_random_code),
         [=](const In& x) { return dropout(x[0], probability, dropout_random); },
         [=](const Arrays& x) {
           Array y = x[0];
           if (probability > 0)
             for (Index i = 0; i < y.size(); ++i) y[i] = dropped(x[0][i], i, probability);
           return y;
         }});
}

Scalar element(const Array& x, Index matrix, Index row, Index column) {
  return x[(matrix * x.shape.dim(-2) + row) * x.shape.dim(-1) + column];
}

/// Rows of the matrices' product; `ta` and `tb` say which operand is transposed.
Array product(const Array& a, const Array& b, bool ta, bool tb) {
  const auto leading = [](const Array& x) {
    return Shape(x.shape.sizes().first(static_cast<std::size_t>(x.shape.rank() - 2)));
  };
  const Shape la = leading(a), lb = leading(b), l = broadcast("fuzz", la, lb);
  const Index m = a.shape.dim(ta ? -1 : -2), k = a.shape.dim(ta ? -2 : -1),
              n = b.shape.dim(tb ? -2 : -1);
  std::vector<Index> sizes(l.begin(), l.end());
  sizes.insert(sizes.end(), {m, n});
  Array y{Shape(sizes), {}};
  if (y.size() == 0) return y;
  const DType dtype = dtype_in({a, b});
  std::vector<Scalar> rows, columns;
  for (Index s = 0; s < l.size(); ++s) {
    const Index sa = broadcast_position(la, l, s), sb = broadcast_position(lb, l, s);
    rows.clear();
    columns.clear();
    for (Index i = 0; i < m; ++i)
      for (Index p = 0; p < k; ++p)
        rows.push_back(ta ? element(a, sa, p, i) : element(a, sa, i, p));
    for (Index j = 0; j < n; ++j)
      for (Index p = 0; p < k; ++p)
        columns.push_back(tb ? element(b, sb, j, p) : element(b, sb, p, j));
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j)
        y.scalars.push_back(dot(
            std::span(rows).subspan(static_cast<std::size_t>(i * k), static_cast<std::size_t>(k)),
            std::span(columns).subspan(static_cast<std::size_t>(j * k),
                                       static_cast<std::size_t>(k)),
            dtype));
  }
  return y;
}

void draw_matmul(Builder& b) {
  const Index m = b.size(65), n = b.size(65),
              k = b.size(std::clamp<Index>(40000 / std::max<Index>(1, m * n), 3, 130));
  const auto transpose = b.draw.pick({Transpose::none, Transpose::first, Transpose::second});
  const bool ta = transpose == Transpose::first, tb = transpose == Transpose::second;
  std::vector<Index> first = ta ? std::vector{k, m} : std::vector{m, k};
  std::vector<Index> second = tb ? std::vector{n, k} : std::vector{k, n};
  if (m * n * k < 3000 && b.draw.chance(40)) {
    const Index batch = b.size(5);
    if (b.draw.chance(70)) first.insert(first.begin(), batch);
    if (b.draw.chance(70)) second.insert(second.begin(), b.draw.chance(20) ? 1 : batch);
    if (first.size() == 3 && b.draw.chance(20)) first.insert(first.begin(), b.size(3));
  }
  const bool row = !ta && first.size() == 2 && b.draw.chance(10),
             column = !tb && second.size() == 2 && b.draw.chance(10);
  if (row) first = {k};
  if (column) second = {k};
  const std::size_t x = b.like(Shape(first)), y = b.like(Shape(second));
  const char* code = ta   ? "matmul($0, $1, Transpose::first)"
                     : tb ? "matmul($0, $1, Transpose::second)"
                          : "matmul($0, $1)";
  b.add("matmul", {x, y},
        {code, [=](const In& in) { return matmul(in[0], in[1], transpose); },
         [=](const Arrays& in) {
           Array left = in[0], right = in[1];
           if (row) left.shape = {1, k};
           if (column) right.shape = {k, 1};
           Array result = product(left, right, ta, tb);
           std::vector<Index> sizes(result.shape.begin(), result.shape.end());
           if (column) sizes.pop_back();
           if (row) sizes.erase(sizes.end() - (column ? 1 : 2));
           return Array{Shape(sizes), result.scalars};
         }});
}

using Linear = Tensor (*)(const Tensor&, const Tensor&, const Tensor&);

OpDraw affine_map(const std::string& name, Linear run, bool activated) {
  return [=](Builder& b) {
    const std::size_t x = b.any(1, 3);
    const Shape shape = b.shape_of(x);
    const Index in = shape.dim(-1), rows = in ? shape.size() / in : 1;
    const Index out = b.size(rows * in > 300 ? 17 : 65);
    std::vector<std::size_t> operands = {x, b.like({out, in})};
    if (b.draw.chance(60)) operands.push_back(b.like({out}));
    const bool bias = operands.size() == 3;
    b.add(name, operands,
          {name + (bias ? "($0, $1, $2)" : "($0, $1)"),
           [=](const In& given) { return run(given[0], given[1], bias ? given[2] : Tensor()); },
           [=](const Arrays& given) {
             return linear(
                 activated ? map(given[0], [](const Scalar& s) { return gelu(s); }) : given[0],
                 given[1], bias ? &given[2] : nullptr);
           }});
  };
}

/// f of what lies along an axis, which has as many results.
template <class F>
Array map_axis(const Array& x, int axis, F f) {
  std::array<bool, Shape::max_rank> reduced{};
  reduced[static_cast<std::size_t>(axis < 0 ? axis + x.shape.rank() : axis)] = true;
  Array y = x;
  for (const auto& column : columns(x.shape, reduced)) {
    const auto results = f(at(x, column));
    for (std::size_t i = 0; i < results.size(); ++i) y[column[i]] = results[i];
  }
  return y;
}

/// f of what lies along an axis.
template <class F>
OpDraw along_axis(const std::string& name, Tensor (*run)(const Tensor&, int), F f) {
  return [=](Builder& b) {
    const std::size_t x = b.any(1);
    const int axis = b.axis(b.shape_of(x));
    b.add(name, {x},
          {fmt::format("{}($0, {})", name, axis), [=](const In& in) { return run(in[0], axis); },
           [=](const Arrays& in) {
             return map_axis(in[0], axis, [&](const auto& s) { return f(s, dtype_in(in)); });
           }});
  };
}

std::vector<Scalar> log_softmax(std::span<const Scalar> x, DType dtype) {
  const Scalar max = shift_of(x, dtype), total = log_total(x, max, dtype);
  std::vector<Scalar> y;
  for (const Scalar& v : x) y.push_back((v - max) - total);
  return y;
}

void draw_embedding(Builder& b) {
  const Index rows = b.positive(33);
  const std::size_t weight = b.like({rows, b.size(33)});
  const Indices ids = b.indices(b.shape(0, 2, 50), rows);
  const auto padding = b.draw.chance(30) ? std::optional(b.draw.index_below(rows)) : std::nullopt;
  b.add("embedding", {weight},
        {padding ? fmt::format("embedding($0, {}, {})", text(ids), *padding)
                 : fmt::format("embedding($0, {})", text(ids)),
         [=](const In& x) { return embedding(x[0], ids, padding); },
         [=](const Arrays& x) {
           std::vector<Index> sizes(ids.shape().begin(), ids.shape().end());
           const Index width = x[0].shape[1];
           sizes.push_back(width);
           Array y{Shape(sizes), {}};
           for (const auto id : ids.data())
             for (const Scalar& s : row(x[0], id, width))
               y.scalars.push_back(id == padding ? fixed(s) : s);
           return y;
         },
         true, padding.has_value()});
}

}  // namespace

Array layer_norm(const Array& x, const Array& gain, const Array* bias, double epsilon) {
  return map_rows(x, [&](auto s) {
    const DType dtype = gain[0].dtype();
    const auto n = static_cast<Real>(s.size());
    const Scalar center = mean(s, n, dtype);
    std::vector<Scalar> d, squares;
    for (const Scalar& v : s) d.push_back(v - center);
    for (const Scalar& v : d) squares.push_back(v * v);
    const Scalar deviation = sqrt(Real{epsilon} + mean(squares, n, dtype));
    for (Index i = 0; i < gain.size(); ++i) {
      Scalar& v = d[static_cast<std::size_t>(i)];
      v = v * (1 / deviation) * gain[i];
      if (bias) v = v + (*bias)[i];
    }
    return d;
  });
}

namespace {

void draw_layer_norm(Builder& b) {
  const std::size_t x = b.any(1);
  const Index width = b.shape_of(x).dim(-1);
  if (width == 0) return;  // is refused
  const bool bias = b.draw.chance(70);
  const double epsilon = b.option({1e-5, 1e-3, 1, 0});
  // Of gains near the largest value, sums over a row overflow.
  std::vector<std::size_t> operands = {x, b.within({width}, -2, 2)};
  if (bias) operands.push_back(b.like({width}));
  b.add("layer_norm", operands,
        {fmt::format("layer_norm($0, $1, {}, {})", bias ? "$2" : "Tensor()", text(epsilon)),
         [=](const In& in) { return layer_norm(in[0], in[1], bias ? in[2] : Tensor(), epsilon); },
         [=](const Arrays& in) {
           return layer_norm(in[0], in[1], bias ? &in[2] : nullptr, epsilon);
         }});
}

void draw_rms_norm(Builder& b) {
  const std::size_t x = b.any(1);
  const Index width = b.shape_of(x).dim(-1);
  if (width == 0) return;  // is refused
  const double epsilon = b.option({1e-5, 1e-3, 1, 0});
  // Of gains near the largest value, sums over a row overflow.
  b.add("rms_norm", {x, b.within({width}, -2, 2)},
        {fmt::format("rms_norm($0, $1, {})", text(epsilon)),
         [=](const In& in) { return rms_norm(in[0], in[1], epsilon); },
         [=](const Arrays& in) {
           return map_rows(in[0], [&](auto s) {
             std::vector<Scalar> y(s.begin(), s.end()), squares;
             for (const Scalar& v : s) squares.push_back(v * v);
             const Scalar size =
                 sqrt(Real{epsilon} + mean(squares, static_cast<Real>(s.size()), dtype_in(in)));
             for (Index i = 0; i < width; ++i) {
               Scalar& v = y[static_cast<std::size_t>(i)];
               v = v * (1 / size) * in[1][i];
             }
             return y;
           });
         }});
}

/// cos, sin of the angles of position first + t.
Array angles(Index time, Index head_width, Index first, DType dtype, bool sines) {
  const Index half = head_width / 2;
  Array y{{time, half}, {}};
  for (Index t = 0; t < time; ++t)
    for (Index i = 0; i < half; ++i) {
      const Real angle = static_cast<Real>(first + t) /
                         std::pow(10000.0L, static_cast<Real>(i) / static_cast<Real>(half));
      const Real value = sines ? std::sin(angle) : std::cos(angle);
      Number n = rounded(value, 0, dtype, false);
      // The angle itself is computed in float64.
      n.loosen(std::fabs(angle) * 4 * 0x1p-53L / format_of(dtype).unit);
      y.scalars.push_back({n});
    }
  return y;
}

struct Rotary {
  Index heads, part, first;

  Array operator()(const Array& x) const {
    Array y = x;
    const Index time = x.shape[1], half = part / 2;
    const Array cosines = angles(time, part, first, dtype_in({x}), false),
                sines = angles(time, part, first, dtype_in({x}), true);
    for (Index i = 0; i < x.size(); i += part)
      for (Index j = 0; j < half; ++j) {
        const Index at = i / (part * heads) % time * half + j;
        y[i + j] = x[i + j] * cosines[at] - x[i + j + half] * sines[at];
        y[i + j + half] = x[i + j] * sines[at] + x[i + j + half] * cosines[at];
      }
    return y;
  }
};

}  // namespace

Array rotary(const Array& x, Index heads) {
  return Rotary{heads, x.shape[2] / heads, 0}(x);
}

namespace {

void draw_rotary(Builder& b) {
  const Rotary turn{b.draw.pick<Index>({1, 2, 3}), 2 * b.positive(17),
                    b.draw.pick<Index>({0, 1, 5, 1000})};
  const Index time = b.size(17);
  const std::size_t x = b.like({b.size(5), time, turn.heads * turn.part});
  b.add("rotary", {x},
        {fmt::format("rotary($0, {}, rotary_cos_sin({}, {}, {}, dtype))", turn.heads, time,
                     turn.part, turn.first),
         [=](const In& in) {
           return rotary(in[0], turn.heads,
                         rotary_cos_sin(time, turn.part, turn.first, in[0].dtype()));
         },
         [=](const Arrays& in) { return turn(in[0]); }});
}

}  // namespace

Array conv1d(const Array& x, const Array& weight, const Array* bias, const Conv1dOptions& options) {
  const Index time = x.shape[1], in = x.shape[2], out = weight.shape[0], kernel = weight.shape[2];
  const Index reach = (kernel - 1) * options.dilation + 1;
  const Index steps = (time + 2 * options.padding - reach) / options.stride + 1;
  const DType dtype = weight[0].dtype();
  Array y{{x.shape[0], steps, out}, {}};
  for (Index n = 0; n < x.shape[0]; ++n)
    for (Index t = 0; t < steps; ++t)
      for (Index o = 0; o < out; ++o) {
        std::vector<Scalar> inputs, weights;
        for (Index p = 0; p < kernel; ++p) {
          const Index from = t * options.stride + p * options.dilation - options.padding;
          for (Index i = 0; i < in; ++i) {
            inputs.push_back(from >= 0 && from < time ? x[(n * time + from) * in + i]
                                                      : zero(dtype));
            weights.push_back(weight[(o * in + i) * kernel + p]);
          }
        }
        const Scalar product = dot(inputs, weights, dtype);
        y.scalars.push_back(bias ? product + (*bias)[o] : product);
      }
  return y;
}

namespace {

void draw_conv1d(Builder& b) {
  const Conv1dOptions options{.stride = 1 + b.draw.index_below(3),
                              .padding = b.draw.index_below(4),
                              .dilation = 1 + b.draw.index_below(3)};
  const Index kernel = 1 + b.draw.index_below(5), in = b.positive(9), out = b.positive(17);
  const Index reach = (kernel - 1) * options.dilation + 1;
  const Index time = std::max<Index>(b.size(33), reach - 2 * options.padding);
  if (time < 1) return;
  std::vector<std::size_t> operands = {b.like({b.size(5), time, in}), b.like({out, in, kernel})};
  const bool bias = b.draw.chance(60);
  if (bias) operands.push_back(b.like({out}));
  b.add("conv1d", operands,
        {fmt::format("conv1d($0, $1, {}, {{.stride = {}, .padding = {}, .dilation = {}}})",
                     bias ? "$2" : "Tensor()", options.stride, options.padding, options.dilation),
         [=](const In& x) { return conv1d(x[0], x[1], bias ? x[2] : Tensor(), options); },
         [=](const Arrays& x) { return conv1d(x[0], x[1], bias ? &x[2] : nullptr, options); }});
}

}  // namespace

const std::map<std::string, OpDraw>& layer_draws() {
  static const std::map<std::string, OpDraw> draws = {
      {"matmul", draw_matmul},
      {"linear", affine_map("linear", qkv::linear, false)},
      {"gelu_linear", affine_map("gelu_linear", qkv::gelu_linear, true)},
      {"softmax", along_axis("softmax", qkv::softmax, softmax)},
      {"log_softmax", along_axis("log_softmax", qkv::log_softmax, log_softmax)},
      {"embedding", draw_embedding},
      {"layer_norm", draw_layer_norm},
      {"rms_norm", draw_rms_norm},
      {"rotary", draw_rotary},
      {"rotary_cos_sin", draw_rotary},
      {"conv1d", draw_conv1d},
      {"dropout", draw_dropout},
  };
  return draws;
}

}  // namespace qkv::fuzz
