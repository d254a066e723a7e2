#include <cmath>
#include <limits>

#include "core/random.h"
#include "tests/core/reference/reference.h"

namespace qkv::tests::reference {
namespace {

/// As in the table of samples.
const Random random(7, Purpose::testing);

/// 0 for a dropped element, which element `index` of the random stream decides, else
/// 1 / (1 - probability).
double dropout_factor(double probability, std::size_t index) {
  return random.uniform(index) < probability ? 0 : 1 / (1 - probability);
}

Array matmul(const Arrays& x) {
  return product(x[0], x[1]);
}
Array matmul_first_transposed(const Arrays& x) {
  return product(transposed(x[0]), x[1]);
}
Array matmul_second_transposed(const Arrays& x) {
  return product(x[0], transposed(x[1]));
}

Array linear(const Arrays& x) {
  const Array y = product(x[0], transposed(x[1]));
  if (x.size() < 3) return y;
  return y + x[2];
}
Array gelu_linear(Arrays x) {
  x[0] = gelu(x[0]);
  return linear(x);
}

Oracle softmax(std::size_t axis) {
  return [=](const Arrays& x) -> Array { return xt::exp(log_softmax(x[0], axis)); };
}
Oracle log_softmax_of(std::size_t axis) {
  return [=](const Arrays& x) { return log_softmax(x[0], axis); };
}

struct Attention {
  std::size_t heads;
  double scale;
  std::vector<std::size_t> lengths = {};  ///< none: all keys are visible
  bool causal = false;
  double dropout = 0;
};

/// [B, T, D] -> [B, H, T, D / H]
Array heads_of(const Array& x, std::size_t heads) {
  return permuted(reshaped(x, {x.shape(0), x.shape(1), heads, x.shape(2) / heads}), {0, 2, 1, 3});
}

/// Softmax over the last axis, in which -inf hides; zeros where all is hidden.
Array softmax_of_visible(const Array& scores) {
  const std::size_t axis = scores.dimension() - 1;
  const Array largest = max_over(scores, {axis}, true);
  const Array shift = xt::where(xt::isinf(largest), 0.0, largest);
  const Array weights = xt::exp(scores - shift);
  const Array sums = sum_over(weights, {axis}, true);
  const Array divisors = xt::where(sums > 0, sums, 1.0);
  return weights / divisors;
}

Array attention(const Array& q, const Array& k, const Array& v, const Array& bias,
                const Attention& a) {
  Array scores = a.scale * product(heads_of(q, a.heads), transposed(heads_of(k, a.heads))) + bias;
  const Sizes sizes = sizes_of(scores);
  const std::size_t queries = sizes[2], keys = sizes[3];
  const Array hidden = computed(sizes, [&](const auto& at) {
    const bool padding = !a.lengths.empty() && at[3] >= a.lengths[at[0]];
    const bool future = a.causal && at[3] + queries > at[2] + keys;
    return padding || future ? 1 : 0;
  });
  scores = Array(xt::where(hidden > 0, -std::numeric_limits<double>::infinity(), scores));
  const Array factors = computed(sizes, [&](const auto& at) {
    return dropout_factor(a.dropout, ((at[0] * a.heads + at[1]) * keys + at[3]) * queries + at[2]);
  });
  const Array weights = softmax_of_visible(scores) * factors;
  return reshaped(permuted(product(weights, heads_of(v, a.heads)), {0, 2, 1, 3}), sizes_of(q));
}

/// Of queries, keys, values and, where there is one, a bias; of one input for all three.
Oracle attention(const Attention& a) {
  return [=](const Arrays& x) {
    if (x.size() == 1) return attention(x[0], x[0], x[0], 0.0, a);
    return attention(x[0], x[1], x[2], x.size() > 3 ? x[3] : Array(0.0), a);
  };
}

/// -inf for every third element, all of the first row among them, else 0.
Array hiding(const Sizes& sizes) {
  Array y = filled(sizes, 0);
  for (std::size_t i = 0; i < y.size(); ++i)
    if (i % 3 == 0 || i < sizes.back()) y.data()[i] = -std::numeric_limits<double>::infinity();
  return y;
}

Array embedding(const Array& weight, const Sizes& sizes, const std::vector<std::size_t>& ids) {
  Sizes with_width = sizes;
  with_width.push_back(weight.shape(1));
  const Array rows = computed({ids.size(), weight.shape(1)},
                              [&](const auto& at) { return weight(ids[at[0]], at[1]); });
  return reshaped(rows, with_width);
}

Array layer_norm(const Arrays& x) {
  const std::size_t axis = x[0].dimension() - 1;
  const Array centred = x[0] - mean_over(x[0], {axis}, true);
  const Array variances = mean_over(xt::square(centred), {axis}, true);
  const Array y = centred / xt::sqrt(variances + 1e-5) * x[1];
  if (x.size() < 3) return y;
  return y + x[2];
}

Oracle rms_norm(double epsilon) {
  return [=](const Arrays& x) -> Array {
    const Array squares = mean_over(xt::square(x[0]), {x[0].dimension() - 1}, true);
    return x[0] / xt::sqrt(squares + epsilon) * x[1];
  };
}

/// Elements i and i + width / 2 of each head of position t turn by the angle
/// (first + t) / 10000^(2 i / width).
Array rotary(const Array& x, std::size_t width, std::size_t first) {
  return computed(sizes_of(x), [&](const auto& at) {
    const std::size_t half = width / 2, j = at[2] % width, i = j % half;
    const double angle = static_cast<double>(first + at[1]) /
                         std::pow(10000.0, 2 * static_cast<double>(i) / static_cast<double>(width));
    const std::size_t head = at[2] - j;
    const double a = x(at[0], at[1], head + i), b = x(at[0], at[1], head + i + half);
    return j < half ? a * std::cos(angle) - b * std::sin(angle)
                    : b * std::cos(angle) + a * std::sin(angle);
  });
}

struct Convolution {
  std::size_t stride = 1, padding = 0, dilation = 1;
};
Oracle conv1d(const Convolution& c) {
  return [=](const Arrays& in) {
    const Array &x = in[0], &weight = in[1];
    const std::size_t time = x.shape(1), kernel = weight.shape(2);
    const std::size_t places =
        (time + 2 * c.padding - c.dilation * (kernel - 1) - 1) / c.stride + 1;
    return computed({x.shape(0), places, weight.shape(0)}, [&](const auto& at) {
      double y = in.size() > 2 ? in[2](at[2]) : 0;
      for (std::size_t k = 0; k < kernel; ++k) {
        const std::size_t t = at[1] * c.stride + k * c.dilation;
        if (t < c.padding || t >= time + c.padding) continue;
        for (std::size_t i = 0; i < x.shape(2); ++i)
          y += weight(at[2], i, k) * x(at[0], t - c.padding, i);
      }
      return y;
    });
  };
}

}  // namespace

const Oracles& layer_oracles() {
  static const Oracles all = {
      {"matmul: matrices", matmul},
      {"matmul: batches", matmul},
      {"matmul: one matrix for a batch", matmul},
      {"matmul: first transposed", matmul_first_transposed},
      {"matmul: second transposed", matmul_second_transposed},
      {"matmul: size 1", matmul},
      {"matmul: two vectors", [](const Arrays& x) { return sum_over(x[0] * x[1], {0}); }},
      {"matmul: a vector and matrices",
       [](const Arrays& x) {
         return sum_over(reshaped(x[0], {4, 1}) * x[1], {1});
       }},
      {"matmul: matrices and a vector", [](const Arrays& x) { return sum_over(x[0] * x[1], {2}); }},
      {"matmul: a vector and a transposed matrix",
       [](const Arrays& x) { return sum_over(x[0] * x[1], {1}); }},
      {"matmul: leading axes broadcast", matmul},
      {"matmul: both broadcast, second transposed", matmul_second_transposed},
      {"matmul: one matrix, first transposed", matmul_first_transposed},
      {"matmul: empty batch",
       [](const Arrays&) {
         return filled({0, 3, 5}, 0);
       }},
      {"linear: with bias", linear},
      {"linear: without bias", linear},
      {"gelu_linear: with bias", gelu_linear},
      {"gelu_linear: without bias", gelu_linear},
      {"softmax: rows", softmax(2)},
      {"softmax: rows of one", softmax(1)},
      {"softmax: first axis", softmax(0)},
      {"softmax: middle axis", softmax(1)},
      {"log_softmax: rows", log_softmax_of(2)},
      {"log_softmax: first axis", log_softmax_of(0)},
      {"log_softmax: middle axis", log_softmax_of(1)},
      {"log_softmax: large", log_softmax_of(1)},
      {"log_softmax: rows of one", log_softmax_of(1)},
      {"attention: one head", attention({.heads = 1, .scale = 0.5})},
      {"attention: two heads, padding", attention({.heads = 2, .scale = 0.6, .lengths = {3, 1}})},
      {"attention: causal", attention({.heads = 3, .scale = 0.7, .causal = true})},
      {"attention: causal, padding and dropout",
       attention({.heads = 2, .scale = 0.7, .lengths = {4, 2}, .causal = true, .dropout = 0.4})},
      {"attention: longer than a vector, causal and padding",
       attention({.heads = 2, .scale = 0.7, .lengths = {21, 10}, .causal = true})},
      {"attention: fewer queries than keys, causal and dropout",
       attention({.heads = 1, .scale = 0.9, .causal = true, .dropout = 0.3})},
      {"attention: more queries than keys, causal",
       attention({.heads = 2, .scale = 0.6, .causal = true})},
      {"attention: parameter-free", attention({.heads = 1, .scale = 1, .lengths = {3, 1}})},
      {"attention: uniform", attention({.heads = 1, .scale = 0, .lengths = {3, 1}})},
      {"attention: a bias of each score", attention({.heads = 2, .scale = 0.6})},
      {"attention: a bias of each head, causal, padding and dropout",
       attention({.heads = 2, .scale = 0.7, .lengths = {4, 2}, .causal = true, .dropout = 0.4})},
      {"attention: a bias of each key of a sequence, longer than a vector",
       attention({.heads = 2, .scale = 0.7, .causal = true})},
      {"attention: a bias that hides, rows without any key among them",
       [](const Arrays& x) {
         return attention(x[0], x[1], x[2], hiding({5, 7}), {.heads = 2, .scale = 0.7});
       }},
      {"embedding: padding that counts for nothing",
       [](const Arrays& x) -> Array {
         const Array counts = reshaped({0.0, 1.0, 0.0, 1.0}, {2, 2, 1});
         return embedding(x[0], {2, 2}, {4, 0, 4, 1}) * counts;
       }},
      {"embedding: an id twice",
       [](const Arrays& x) {
         return embedding(x[0], {2, 2}, {4, 0, 4, 1});
       }},
      {"embedding: one id", [](const Arrays& x) { return embedding(x[0], {1}, {3}); }},
      {"layer_norm: rows", layer_norm},
      {"layer_norm: without bias", layer_norm},
      {"layer_norm: one row", layer_norm},
      {"rms_norm: rows", rms_norm(1e-5)},
      {"rms_norm: width 1", rms_norm(0.1)},
      {"rotary: two heads", [](const Arrays& x) { return rotary(x[0], 4, 5); }},
      {"dropout: half",
       [](const Arrays& x) -> Array {
         return x[0] * computed({4, 5}, [](const auto& at) {
                  return dropout_factor(0.5, at[0] * 5 + at[1]);
                });
       }},
      {"conv1d: with bias", conv1d({})},
      {"conv1d: stride, padding and dilation", conv1d({.stride = 2, .padding = 2, .dilation = 2})},
      {"conv1d: a stride that does not divide", conv1d({.stride = 2})},
      {"conv1d: a kernel as long as the sequence", conv1d({})},
      {"conv1d: size 1", conv1d({})},
  };
  return all;
}

}  // namespace qkv::tests::reference
