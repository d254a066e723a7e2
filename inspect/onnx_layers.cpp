#include "inspect/onnx_layers.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "core/ops.h"

namespace qkv::onnx_export {
namespace {

const Integers last_two_swapped = {0, 1, 3, 2}, heads_before_time = {0, 2, 1, 3};

/// Rows of gates in ONNX's order, and the operator's name and attributes.
struct OnnxCell {
  std::string op;
  std::vector<std::size_t> gates;
  std::vector<Attribute> attributes;
};

OnnxCell onnx_cell(CellKind kind) {
  switch (kind) {
    case CellKind::rnn:
      return {"RNN", {0}, {}};
    case CellKind::gru:  // ours: reset, update, new
      return {"GRU", {1, 0, 2}, {{"linear_before_reset", Index{1}}}};
    case CellKind::lstm:  // ours: input, forget, cell, output
      break;
  }
  return {"LSTM", {0, 3, 1, 2}, {}};
}

}  // namespace

Tokens Layers::tokens_of(const Value& ids) {
  const Value time = op("Shape", {ids}, {{"start", Index{1}}, {"end", Index{2}}});
  const Value count = op("Squeeze", {time});
  return {ids, time, op("Range", {integer(0), count, integer(1)})};
}

Value Layers::causal(const Tokens& tokens) {
  return unsqueeze(
      op("LessOrEqual", {unsqueeze(tokens.positions, {0}), unsqueeze(tokens.positions, {1})}),
      {0, 1});
}

Value Layers::embedded(const Tokens& tokens) {
  Value x = op("Gather", {parameter("embedding.weight"), tokens.ids});
  if (has("token_types.weight")) x = add(x, slice(parameter("token_types.weight"), 0, 0, 1));
  if (const auto positions = make_input_positions(options_);
      positions && is_transformer(options_.kind))
    x = add(x, first_rows(tensor(with_values(*positions, "positions")
                                     .encoding(0, options_.max_length, DType::float32)),
                          tokens));
  return has("input_norm.weight") ? norm(x, "input_norm") : x;
}

Value Layers::linear(const Value& x, const std::string& path) {
  const Value y = times_transposed(x, parameter(path + ".weight"));
  return has(path + ".bias") ? add(y, parameter(path + ".bias")) : y;
}

/// GELU is x / 2 (1 + erf(x / sqrt(2))), or x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
Value Layers::activated(const Value& x) {
  const auto gated = [&](const Value& y) {
    return multiply(multiply(x, number(0.5)), add(y, number(1)));
  };
  switch (options_.activation) {
    case ActivationKind::gelu_tanh: {
      const Value inner = add(x, multiply(number(0.044715), multiply(multiply(x, x), x)));
      return gated(op("Tanh", {multiply(number(std::sqrt(2 / std::numbers::pi)), inner)}));
    }
    case ActivationKind::gelu:
      return gated(op("Erf", {multiply(x, number(std::numbers::sqrt2 / 2))}));
    case ActivationKind::relu:
      return op("Relu", {x});
    case ActivationKind::relu_squared: {
      const Value y = op("Relu", {x});
      return multiply(y, y);
    }
  }
  throw ValueError("there is no such activation");
}

Value Layers::norm(const Value& x, const std::string& path) {
  std::vector<Value> inputs = {x, parameter(path + ".weight")};
  if (has(path + ".bias")) inputs.push_back(parameter(path + ".bias"));
  return op("LayerNormalization", inputs,
            {{"axis", Index{-1}}, {"epsilon", static_cast<float>(norm_epsilon(options_.kind))}});
}

template <class Sublayer>
Value Layers::with_residual(const Value& x, const std::string& norm_path, Sublayer sublayer) {
  switch (options_.norm) {
    case NormKind::pre:
      return add(x, sublayer(norm(x, norm_path)));
    case NormKind::post:
      return norm(add(x, sublayer(x)), norm_path);
    case NormKind::none:
      break;
  }
  return add(x, sublayer(x));
}

/// Queries, keys or values by head: [batch, head, time, d_k]. Where there are fewer heads of keys
/// and values, those of queries share them.
Value Layers::heads(const Value& x, const std::string& projection, Index heads) {
  const bool projects = has(projection + ".weight");
  const Index head_width = options_.width / heads;
  const Index own = projects ? tensor(projection + ".weight").dim(0) / head_width : heads;
  const Value y = transpose(reshape(projects ? linear(x, projection) : x, {0, 0, own, head_width}),
                            heads_before_time);
  if (own == heads) return y;
  Integers shared;
  for (Index head = 0; head < heads; ++head) shared.push_back(head * own / heads);
  return op("Gather", {y, integers(shared)}, {{"axis", Index{1}}});
}

/// x [batch, head, time, d_k] with each pair (x_i, x_{i + d_k / 2}) rotated by its angle.
Value Layers::rotated(const Value& x, const Tokens& tokens, Index head_width) {
  const Index half = head_width / 2;
  const Tensor table = rotary_cos_sin(options_.max_length, head_width, 0, DType::float32);
  const Value cos = first_rows(tensor(qkv::slice(table, 1, 0, half)), tokens),
              sin = first_rows(tensor(qkv::slice(table, 1, half, head_width)), tokens);
  const Value a = slice(x, 3, 0, half), b = slice(x, 3, half, head_width);
  return concat(
      {op("Sub", {multiply(a, cos), multiply(b, sin)}), add(multiply(b, cos), multiply(a, sin))},
      3);
}

/// `scores` [batch, head, query, key] with the bias of positions for the distance of a key from its
/// query, of which a table has those that a sequence may have.
Value Layers::with_bias(const Value& scores, const std::string& path, const Tokens& tokens) {
  ModelOptions options = options_;
  options.attention = AttentionKind::learned;  // an encoder-decoder's encoder may have another
  const auto positions = make_attention_positions(options);
  if (!positions) return scores;
  const Index length = options_.max_length, heads = options_.heads;
  const auto biases = [&](Index query) {
    return with_values(*positions, path).score_bias(heads, query, 1, length, DType::float32);
  };
  const Tensor before = biases(length - 1), after = biases(0);
  if (!before) return scores;
  const Tensor table = concatenate({qkv::reshape(before, {heads, length}),
                                    qkv::slice(qkv::reshape(after, {heads, length}), 1, 1, length)},
                                   1);
  const Value distance =
      op("Sub", {unsqueeze(tokens.positions, {0}), unsqueeze(tokens.positions, {1})});
  return add(scores, op("Gather", {tensor(table), add(distance, integer(length - 1))},
                        {{"axis", Index{1}}}));
}

Value Layers::attention(const Value& query, const Value& source, const std::string& path,
                        const Tokens& tokens, const Attended& attended, bool cross) {
  const bool learned = has(path + ".w_q.weight");
  const bool projects = has(path + ".w_o.weight");
  const Index count = projects ? options_.heads : 1, head_width = options_.width / count;
  const double usual = options_.scale ? 1 / std::sqrt(static_cast<double>(head_width)) : 1;
  const double scale = projects && !learned ? 0 : usual;
  Value q = heads(query, path + ".w_q", count), k = heads(source, path + ".w_k", count);
  if (options_.position == PositionKind::rotary && !cross) {
    q = rotated(q, tokens, head_width);
    k = rotated(k, tokens, head_width);
  }
  Value scores = multiply(op("MatMul", {q, transpose(k, last_two_swapped)}), number(scale));
  if (learned && !cross) scores = with_bias(scores, path + ".positions", tokens);
  const Value seen = cross ? attended.visible_encoded : attended.visible;
  const Value weights =
      op("Softmax", {where(seen, scores, -std::numeric_limits<double>::infinity())},
         {{"axis", Index{-1}}});
  weights_.push_back(
      {path + ".weights",
       weights,
       {"batch", std::to_string(count), attended.time, cross ? "time" : attended.time}});
  const Value mixed = op("MatMul", {weights, heads(source, path + ".w_v", count)});
  const Value joined = reshape(transpose(mixed, heads_before_time), {0, 0, options_.width});
  return projects ? linear(joined, path + ".w_o") : joined;
}

Value Layers::transformer(Value x, const std::string& path, const Tokens& tokens,
                          const Attended& attended) {
  for (Index i = 0; i < options_.layers; ++i) {
    const auto part = [&](std::string_view name) {
      return fmt::format("{}.layers.{}.{}", path, i, name);
    };
    const auto self = [&](const Value& h) {
      return attention(h, h, part("attention"), tokens, attended, false);
    };
    const bool has_residual = has(part("attention.w_o.weight"));
    x = has_residual ? with_residual(x, part("norm_1"), self) : self(x);
    if (has(part("cross_attention.w_o.weight")))
      x = with_residual(x, part("norm_cross"), [&](const Value& h) {
        return attention(h, attended.encoded, part("cross_attention"), tokens, attended, true);
      });
    if (has(part("feed_forward.w_1.weight")))
      x = with_residual(x, part("norm_2"),
                        [&](const Value& h) { return feed_forward(h, part("feed_forward")); });
  }
  return has(path + ".norm.weight") ? norm(x, path + ".norm") : x;
}

Value Layers::recurrent(Value x, const Value& lengths) {
  const OnnxCell cell = onnx_cell(options_.cell);
  const Index directions = options_.bidirectional ? 2 : 1, width = options_.width / directions;
  const auto ordered = [&](const std::string& path) {
    const auto gates = split(tensor(path), 0, std::ssize(cell.gates));
    std::vector<Tensor> parts;
    for (const std::size_t gate : cell.gates) parts.push_back(gates[gate]);
    return concatenate(parts, 0);
  };
  const Value counts = op("Cast", {lengths}, {{"to", Index{onnx::TensorProto::INT32}}});
  std::vector<Attribute> attributes = cell.attributes;
  attributes.push_back({"hidden_size", width});
  if (options_.bidirectional) attributes.push_back({"direction", std::string("bidirectional")});
  for (Index layer = 0; layer < options_.layers; ++layer) {
    std::vector<Tensor> of_inputs, of_states, biases;
    for (const std::string& suffix : {std::string(), std::string("_reverse")}) {
      const auto path = [&](std::string_view name) {
        return fmt::format("recurrent.{}_l{}{}", name, layer, suffix);
      };
      if (!has(path("weight_ih"))) continue;
      of_inputs.push_back(ordered(path("weight_ih")));
      of_states.push_back(ordered(path("weight_hh")));
      biases.push_back(concatenate({ordered(path("bias_ih")), ordered(path("bias_hh"))}, 0));
    }
    const auto stored = [&](const std::vector<Tensor>& parts, std::string_view name) {
      return tensor(stack(parts, 0), fmt::format("recurrent.layers.{}.{}", layer, name));
    };
    const Value y = op(cell.op,
                       {transpose(x, {1, 0, 2}), stored(of_inputs, "W"), stored(of_states, "R"),
                        stored(biases, "B"), counts},
                       attributes);
    x = reshape(transpose(y, {2, 0, 1, 3}), {0, 0, options_.width});
  }
  return x;
}

Value Layers::convolution(Value x, const Value& real) {
  for (Index layer = 0; layer < options_.layers; ++layer) {
    const Value channels = transpose(where(unsqueeze(real, {2}), x, 0), {0, 2, 1});
    std::vector<Value> parts;
    for (Index i = 0;; ++i) {
      const std::string kernel = fmt::format("convolution.layers.{}.kernels.{}.", layer, i);
      if (!has(kernel + "weight")) break;
      const Index size = tensor(kernel + "weight").dim(2);
      parts.push_back(op(
          "Relu", {op("Conv", {channels, parameter(kernel + "weight"), parameter(kernel + "bias")},
                      {{"pads", Integers{(size - 1) / 2, size / 2}}})}));
    }
    x = transpose(concat(parts, 1), {0, 2, 1});
  }
  return x;
}

Value Layers::fixed_length(const Value& x, const Value& real, const Tokens& tokens) {
  const Value zero = integers({0});
  const Value missing = op("Sub", {integers({options_.max_length}), tokens.time});
  const Value all = op("Pad", {where(unsqueeze(real, {2}), x, 0),
                               concat({zero, zero, zero, zero, missing, zero}, 0)});
  const Value flat = reshape(all, {0, options_.max_length * options_.width});
  const Value y =
      reshape(feed_forward(flat, "feed_forward"), {0, options_.max_length, options_.width});
  return slice(y, 1, zero, tokens.time);
}

}  // namespace qkv::onnx_export
