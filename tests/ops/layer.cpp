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
             for (std::size_t i = 0; i < y.size(); ++i)
               y.flat(i) = dropped(y.flat(i), i, probability);
           return y;
         }});
}

/// Products of the matrices in the last two axes; `ta` and `tb` say which operand is transposed.
Array product(const Array& a, const Array& b, bool ta, bool tb) {
  const auto transposed = [](const Array& x) {
    return swapped(x, x.dimension() - 2, x.dimension() - 1);
  };
  const auto leading = [](const Array& x) {
    return Shape(shape_of(x).sizes().first(x.dimension() - 2));
  };
  const Array left = ta ? transposed(a) : a, right = tb ? b : transposed(b);
  const Shape problems = broadcast("fuzz", leading(left), leading(right));
  const auto matrices = [&](const Array& x) {
    const Sizes matrix(x.shape().end() - 2, x.shape().end());
    Sizes sizes = sizes_of(problems);
    sizes.insert(sizes.end(), matrix.begin(), matrix.end());
    Array y = xt::broadcast(x, sizes);
    y.reshape({static_cast<std::size_t>(problems.size()), matrix[0], matrix[1]});
    return y;
  };
  const Array rows = matrices(left), columns = matrices(right);
  Array y(Sizes{rows.shape(0), rows.shape(1), columns.shape(1)});
  for (std::size_t i = 0; i < y.shape(0); ++i)
    xt::view(y, i) = linear(xt::view(rows, i), xt::view(columns, i), nullptr);
  Sizes sizes = sizes_of(problems);
  sizes.insert(sizes.end(), y.shape().begin() + 1, y.shape().end());
  y.reshape(sizes);
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
           const auto size = static_cast<std::size_t>(k);
           Array left = in[0], right = in[1];
           if (row) left.reshape({std::size_t{1}, size});
           if (column) right.reshape({size, std::size_t{1}});
           Array y = product(left, right, ta, tb);
           Sizes sizes = y.shape();
           if (column) sizes.pop_back();
           if (row) sizes.erase(sizes.end() - (column ? 1 : 2));
           y.reshape(sizes);
           return y;
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
             return linear(activated ? map(gelu, given[0]) : given[0], given[1],
                           bias ? &given[2] : nullptr);
           }});
  };
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
             return map_axis(in[0], axis_in(in[0], axis),
                             [&](Scalars s) { return f(s, dtype_of(in[0])); });
           }});
  };
}

std::vector<Scalar> log_softmax(Scalars x, DType dtype) {
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
           Array y(Sizes{ids.data().size(), x[0].shape(1)});
           for (std::size_t i = 0; i < ids.data().size(); ++i) {
             const Array row = xt::view(x[0], ids.data()[i]);
             xt::view(y, i) = ids.data()[i] == padding ? map(fixed, row) : row;
           }
           Sizes sizes = sizes_of(ids.shape());
           sizes.push_back(x[0].shape(1));
           y.reshape(sizes);
           return y;
         },
         true, padding.has_value()});
}

/// Means along the last axis, which stays.
Array mean_of_rows(const Array& x) {
  return reduce_axes(x, {x.dimension() - 1}, true,
                     [](Scalars s, DType dtype) { return mean(s, dtype); });
}

/// 1 / sqrt(epsilon + the mean of squares along the last axis)
Array inverse_size(const Array& x, double epsilon) {
  const Array mean_square = mean_of_rows(x * x);
  return Real{1} / xt::sqrt(Real{epsilon} + mean_square);
}

}  // namespace

Array layer_norm(const Array& x, const Array& gain, const Array* bias, double epsilon) {
  const Array centred = x - mean_of_rows(x), inverse = inverse_size(centred, epsilon);
  Array y = centred * inverse * gain;
  if (bias) y = y + *bias;
  return y;
}

Array rms_norm(const Array& x, const Array& gain, double epsilon) {
  const Array inverse = inverse_size(x, epsilon);
  return x * inverse * gain;
}

namespace {

void draw_layer_norm(Builder& b) {
  const std::size_t x = b.any(1);
  const Index width = b.shape_of(x).dim(-1);
  if (width == 0) return;  // is refused
  const bool bias = b.draw.chance(70);
  const double epsilon = b.option({1e-5, 1e-3, 1, 0});
  // With gains near the largest value, sums over a row overflow.
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
  // With gains near the largest value, sums over a row overflow.
  b.add("rms_norm", {x, b.within({width}, -2, 2)},
        {fmt::format("rms_norm($0, $1, {})", text(epsilon)),
         [=](const In& in) { return rms_norm(in[0], in[1], epsilon); },
         [=](const Arrays& in) { return rms_norm(in[0], in[1], epsilon); }});
}

/// cos or sin of the angles [T, 1, part / 2] of the positions from `first` on.
Array angles(std::size_t time, std::size_t half, Index first, DType dtype, bool sines) {
  Array y(Sizes{time, 1, half});
  for (std::size_t t = 0; t < time; ++t)
    for (std::size_t i = 0; i < half; ++i) {
      const Real angle = static_cast<Real>(first + static_cast<Index>(t)) /
                         std::pow(10000.0L, static_cast<Real>(i) / static_cast<Real>(half));
      Number n = rounded(sines ? std::sin(angle) : std::cos(angle), 0, dtype, false);
      // The angle itself is computed in float64.
      n.loosen(std::fabs(angle) * 4 * 0x1p-53L / format_of(dtype).unit);
      y(t, 0, i) = Scalar{n};
    }
  return y;
}

Array rotated(const Array& x, std::size_t heads, Index first) {
  const std::size_t time = x.shape(1), part = x.shape(2) / heads, half = part / 2;
  Array y = x;
  y.reshape({x.shape(0), time, heads, part});
  const auto middle = static_cast<Index>(half);
  const Array a = sliced(y, 3, 0, middle), b = sliced(y, 3, middle, 2 * middle);
  const Array cosines = angles(time, half, first, dtype_of(x), false),
              sines = angles(time, half, first, dtype_of(x), true);
  place(y, 3, 0, a * cosines - b * sines);
  place(y, 3, middle, a * sines + b * cosines);
  y.reshape(x.shape());
  return y;
}

}  // namespace

Array rotary(const Array& x, std::size_t heads) {
  return rotated(x, heads, 0);
}

namespace {

void draw_rotary(Builder& b) {
  const Index heads = b.draw.pick<Index>({1, 2, 3}), part = 2 * b.positive(17),
              first = b.draw.pick<Index>({0, 1, 5, 1000}), time = b.size(17);
  const std::size_t x = b.like({b.size(5), time, heads * part});
  b.add("rotary", {x},
        {fmt::format("rotary($0, {}, rotary_cos_sin({}, {}, {}, dtype))", heads, time, part, first),
         [=](const In& in) {
           return rotary(in[0], heads, rotary_cos_sin(time, part, first, in[0].dtype()));
         },
         [=](const Arrays& in) { return rotated(in[0], static_cast<std::size_t>(heads), first); }});
}

}  // namespace

/// A product of the windows of x, [batch, steps, kernel * in], and the weights, [out, kernel * in].
Array conv1d(const Array& x, const Array& weight, const Array* bias, const Conv1dOptions& options) {
  const std::size_t batch = x.shape(0), time = x.shape(1), in = x.shape(2);
  const std::size_t out = weight.shape(0), kernel = weight.shape(2);
  const auto stride = static_cast<std::size_t>(options.stride),
             padding = static_cast<std::size_t>(options.padding),
             dilation = static_cast<std::size_t>(options.dilation);
  Array padded(Sizes{batch, time + 2 * padding, in}, zero(dtype_of(weight)));
  place(padded, 1, options.padding, x);
  const std::size_t reach = (kernel - 1) * dilation + 1;
  const std::size_t steps = (time + 2 * padding - reach) / stride + 1;
  Array windows(Sizes{batch, steps, kernel, in});
  for (std::size_t n = 0; n < batch; ++n)
    for (std::size_t t = 0; t < steps; ++t)
      xt::view(windows, n, t) =
          xt::view(padded, n, xt::range(t * stride, t * stride + reach, dilation));
  windows.reshape({batch, steps, kernel * in});
  Array weights = swapped(weight, 1, 2);
  weights.reshape({out, kernel * in});
  return linear(windows, weights, bias);
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
