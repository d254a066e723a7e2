#include "inspect/onnx_export.h"

#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "core/ops.h"
#include "inspect/onnx_graph.h"
#include "layers/positions.h"

namespace qkv {
namespace {

using onnx_export::Attribute;
using onnx_export::Graph;
using onnx_export::Integers;
using onnx_export::Value;

constexpr Index ir_version = 8, operator_set = 17;

const Integers last_two_swapped = {0, 1, 3, 2}, heads_before_time = {0, 2, 1, 3};

/// Tokens of a batch of sequences, and values that follow from them.
struct Tokens {
  Value ids;        ///< [batch, time]
  Value time;       ///< [1]
  Value positions;  ///< 0, 1, ... [time]
};

struct Output {
  std::string name;
  Value value;
  std::vector<std::string> axes;
};

/// Builds the graph of a model as the call operators of layers/ and train/tasks/ compute it.
class Exporter {
 public:
  Exporter(const LoadedModel& model, const std::map<std::string, Tensor>& parameters,
           onnx::GraphProto& graph)
      : model_(model.config.model),
        task_(model.config.task.kind),
        outputs_(model.task->outputs()),
        graph_(graph, parameters) {}

  void export_all();

 private:
  Value op(const std::string& type, const std::vector<Value>& inputs,
           const std::vector<Attribute>& attributes = {}) {
    return graph_.op(type, inputs, attributes);
  }
  Value add(const Value& a, const Value& b) { return op("Add", {a, b}); }
  Value multiply(const Value& a, const Value& b) { return op("Mul", {a, b}); }
  Value where(const Value& condition, const Value& x, double otherwise) {
    return op("Where", {condition, x, graph_.number(otherwise)});
  }
  Value unsqueeze(const Value& x, const Integers& axes) {
    return op("Unsqueeze", {x, graph_.integers(axes)});
  }
  Value reshape(const Value& x, const Integers& sizes) {  // 0 keeps a size
    return op("Reshape", {x, graph_.integers(sizes)});
  }
  Value transpose(const Value& x, const Integers& axes) {
    return op("Transpose", {x}, {{"perm", axes}});
  }
  Value slice(const Value& x, Index axis, const Value& begin, const Value& end) {
    return op("Slice", {x, begin, end, graph_.integers({axis})});
  }
  Value slice(const Value& x, Index axis, Index begin, Index end) {
    return slice(x, axis, graph_.integers({begin}), graph_.integers({end}));
  }
  Value concat(const std::vector<Value>& parts, Index axis) {
    return op("Concat", parts, {{"axis", axis}});
  }
  /// The first rows of a table of positions, one for each token.
  Value first_rows(const Value& table, const Tokens& tokens) {
    return slice(table, 0, graph_.integers({0}), tokens.time);
  }

  Tokens tokens_of(const Value& ids);
  Value causal(const Tokens& tokens);
  Value embedded(const Tokens& tokens);
  Value linear(const Value& x, const std::string& path);
  Value times_transposed(const Value& x, const Value& weight) {
    return op("MatMul", {x, transpose(weight, {1, 0})});
  }
  Value gelu(const Value& x);
  Value feed_forward(const Value& x, const std::string& path);
  Value norm(const Value& x, const std::string& path);
  template <class Sublayer>
  Value with_residual(const Value& x, const std::string& norm_path, Sublayer sublayer);

  struct Attended {
    Value visible;       ///< [batch or 1, 1, query or 1, key]
    Value encoded = {};  ///< for cross-attention
    Value visible_encoded = {};
    std::string time = "time";
  };
  Value heads(const Value& x, const std::string& projection, Index heads);
  Value rotated(const Value& x, const Tokens& tokens, Index head_width);
  Value distance_bias(const Tokens& tokens, const std::string& path);
  Value attention(const Value& query, const Value& source, const std::string& path,
                  const Tokens& tokens, const Attended& attended, bool cross);
  Value transformer(Value x, const std::string& path, const Tokens& tokens,
                    const Attended& attended);
  Value recurrent(Value x);
  Value convolution(Value x);
  Value fixed_length(Value x);

  Value contextual();
  Value decoded(const Value& encoded);
  Value row_of_each(const Value& x, const Value& rows);
  Value sentence(const Value& x);
  Value head(const Value& x);
  Value logits(const Value& x);
  std::string classes() const { return std::to_string(outputs_); }

  const ModelOptions& model_;
  TaskKind task_;
  Index outputs_;
  Graph graph_;
  Tokens tokens_;
  Value lengths_;                ///< [batch]
  Value real_;                   ///< which tokens are no padding [batch, time]
  std::vector<Output> weights_;  ///< of attention
};

Tokens Exporter::tokens_of(const Value& ids) {
  const Value time = op("Shape", {ids}, {{"start", Index{1}}, {"end", Index{2}}});
  const Value count = op("Squeeze", {time});
  return {ids, time, op("Range", {graph_.integer(0), count, graph_.integer(1)})};
}

/// Which keys a query attends to that sees no later ones, [1, 1, query, key].
Value Exporter::causal(const Tokens& tokens) {
  return unsqueeze(
      op("LessOrEqual", {unsqueeze(tokens.positions, {0}), unsqueeze(tokens.positions, {1})}),
      {0, 1});
}

Value Exporter::embedded(const Tokens& tokens) {
  Value x = op("Gather", {graph_.parameter("embedding.weight"), tokens.ids});
  if (graph_.has("token_types.weight"))
    x = add(x, slice(graph_.parameter("token_types.weight"), 0, 0, 1));
  if (graph_.has("positions.weight"))
    x = add(x, first_rows(graph_.parameter("positions.weight"), tokens));
  else if (is_transformer(model_.kind) && model_.position == PositionKind::sinusoidal)
    x = add(x, first_rows(graph_.tensor(sinusoidal_positions(0, model_.max_length, model_.width)),
                          tokens));
  return graph_.has("input_norm.weight") ? norm(x, "input_norm") : x;
}

Value Exporter::linear(const Value& x, const std::string& path) {
  const Value y = times_transposed(x, graph_.parameter(path + ".weight"));
  return graph_.has(path + ".bias") ? add(y, graph_.parameter(path + ".bias")) : y;
}

/// x / 2 (1 + erf(x / sqrt(2))), or x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Value Exporter::gelu(const Value& x) {
  if (model_.activation == ActivationKind::gelu) {
    const Value e = op("Erf", {multiply(x, graph_.number(std::numbers::sqrt2 / 2))});
    return multiply(multiply(x, graph_.number(0.5)), add(e, graph_.number(1)));
  }
  const Value cube = multiply(multiply(x, x), x);
  const Value inner = add(x, multiply(graph_.number(0.044715), cube));
  const Value t = op("Tanh", {multiply(graph_.number(std::sqrt(2 / std::numbers::pi)), inner)});
  return multiply(multiply(x, graph_.number(0.5)), add(t, graph_.number(1)));
}

Value Exporter::feed_forward(const Value& x, const std::string& path) {
  return linear(gelu(linear(x, path + ".w_1")), path + ".w_2");
}

Value Exporter::norm(const Value& x, const std::string& path) {
  std::vector<Value> inputs = {x, graph_.parameter(path + ".weight")};
  if (graph_.has(path + ".bias")) inputs.push_back(graph_.parameter(path + ".bias"));
  return op("LayerNormalization", inputs, {{"axis", Index{-1}}, {"epsilon", norm_epsilon(model_.kind)}});
}

template <class Sublayer>
Value Exporter::with_residual(const Value& x, const std::string& norm_path, Sublayer sublayer) {
  switch (model_.norm) {
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
Value Exporter::heads(const Value& x, const std::string& projection, Index heads) {
  const bool projects = graph_.has(projection + ".weight");
  const Index head_width = model_.width / heads;
  const Index own = projects ? graph_.tensor(projection + ".weight").dim(0) / head_width : heads;
  const Value y = transpose(reshape(projects ? linear(x, projection) : x, {0, 0, own, head_width}),
                            heads_before_time);
  if (own == heads) return y;
  Integers shared;
  for (Index head = 0; head < heads; ++head) shared.push_back(head * own / heads);
  return op("Gather", {y, graph_.integers(shared)}, {{"axis", Index{1}}});
}

/// x [batch, head, time, d_k] with each pair (x_i, x_{i + d_k / 2}) rotated by its angle.
Value Exporter::rotated(const Value& x, const Tokens& tokens, Index head_width) {
  const Index half = head_width / 2;
  const Tensor table = rotary_cos_sin(model_.max_length, head_width, 0, DType::float32);
  const Value cos = first_rows(graph_.tensor(qkv::slice(table, 1, 0, half)), tokens),
              sin = first_rows(graph_.tensor(qkv::slice(table, 1, half, head_width)), tokens);
  const Value a = slice(x, 3, 0, half), b = slice(x, 3, half, head_width);
  return concat(
      {op("Sub", {multiply(a, cos), multiply(b, sin)}), add(multiply(b, cos), multiply(a, sin))},
      3);
}

/// The bias of the scores for the distance of a key from its query, [head, query, key].
Value Exporter::distance_bias(const Tokens& tokens, const std::string& path) {
  const Value distance =
      op("Sub", {unsqueeze(tokens.positions, {0}), unsqueeze(tokens.positions, {1})});
  const Value clipped = op("Clip", {distance, graph_.integer(-model_.max_distance),
                                    graph_.integer(model_.max_distance)});
  const Value rows = add(clipped, graph_.integer(model_.max_distance));
  return transpose(op("Gather", {graph_.parameter(path), rows}), {2, 0, 1});
}

Value Exporter::attention(const Value& query, const Value& source, const std::string& path,
                          const Tokens& tokens, const Attended& attended, bool cross) {
  const bool learned = graph_.has(path + ".w_q.weight");
  const bool projects = graph_.has(path + ".w_o.weight");
  const Index count = projects ? model_.heads : 1, head_width = model_.width / count;
  const double usual = model_.scale ? 1 / std::sqrt(static_cast<double>(head_width)) : 1;
  const double scale = projects && !learned ? 0 : usual;
  Value q = heads(query, path + ".w_q", count), k = heads(source, path + ".w_k", count);
  if (model_.position == PositionKind::rotary && !cross) {
    q = rotated(q, tokens, head_width);
    k = rotated(k, tokens, head_width);
  }
  Value scores = multiply(op("MatMul", {q, transpose(k, last_two_swapped)}), graph_.number(scale));
  if (graph_.has(path + ".positions.weight"))
    scores = add(scores, distance_bias(tokens, path + ".positions.weight"));
  const Value seen = cross ? attended.visible_encoded : attended.visible;
  const Value weights =
      op("Softmax", {where(seen, scores, -std::numeric_limits<double>::infinity())},
         {{"axis", Index{-1}}});
  weights_.push_back(
      {path + ".weights",
       weights,
       {"batch", std::to_string(count), attended.time, cross ? "time" : attended.time}});
  const Value mixed = op("MatMul", {weights, heads(source, path + ".w_v", count)});
  const Value joined = reshape(transpose(mixed, heads_before_time), {0, 0, model_.width});
  return projects ? linear(joined, path + ".w_o") : joined;
}

Value Exporter::transformer(Value x, const std::string& path, const Tokens& tokens,
                            const Attended& attended) {
  for (Index i = 0; i < model_.layers; ++i) {
    const auto part = [&](std::string_view name) {
      return fmt::format("{}.layers.{}.{}", path, i, name);
    };
    const auto self = [&](const Value& h) {
      return attention(h, h, part("attention"), tokens, attended, false);
    };
    const bool has_residual = graph_.has(part("attention.w_o.weight"));
    x = has_residual ? with_residual(x, part("norm_1"), self) : self(x);
    if (graph_.has(part("cross_attention.w_o.weight")))
      x = with_residual(x, part("norm_cross"), [&](const Value& h) {
        return attention(h, attended.encoded, part("cross_attention"), tokens, attended, true);
      });
    if (graph_.has(part("feed_forward.w_1.weight")))
      x = with_residual(x, part("norm_2"),
                        [&](const Value& h) { return feed_forward(h, part("feed_forward")); });
  }
  return graph_.has(path + ".norm.weight") ? norm(x, path + ".norm") : x;
}

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

Value Exporter::recurrent(Value x) {
  const OnnxCell cell = onnx_cell(model_.cell);
  const Index directions = model_.bidirectional ? 2 : 1, width = model_.width / directions;
  const auto ordered = [&](const std::string& path) {
    const auto gates = split(graph_.tensor(path), 0, std::ssize(cell.gates));
    std::vector<Tensor> parts;
    for (const std::size_t gate : cell.gates) parts.push_back(gates[gate]);
    return concatenate(parts, 0);
  };
  const Value counts = op("Cast", {lengths_}, {{"to", Index{onnx::TensorProto::INT32}}});
  std::vector<Attribute> attributes = cell.attributes;
  attributes.push_back({"hidden_size", width});
  if (model_.bidirectional) attributes.push_back({"direction", std::string("bidirectional")});
  for (Index layer = 0; layer < model_.layers; ++layer) {
    std::vector<Tensor> of_inputs, of_states, biases;
    for (const std::string& suffix : {std::string(), std::string("_reverse")}) {
      const auto path = [&](std::string_view name) {
        return fmt::format("recurrent.{}_l{}{}", name, layer, suffix);
      };
      if (!graph_.has(path("weight_ih"))) continue;
      of_inputs.push_back(ordered(path("weight_ih")));
      of_states.push_back(ordered(path("weight_hh")));
      biases.push_back(concatenate({ordered(path("bias_ih")), ordered(path("bias_hh"))}, 0));
    }
    const auto stored = [&](const std::vector<Tensor>& parts, std::string_view name) {
      return graph_.tensor(stack(parts, 0), fmt::format("recurrent.layers.{}.{}", layer, name));
    };
    const Value y = op(cell.op,
                       {transpose(x, {1, 0, 2}), stored(of_inputs, "W"), stored(of_states, "R"),
                        stored(biases, "B"), counts},
                       attributes);
    x = reshape(transpose(y, {2, 0, 1, 3}), {0, 0, model_.width});
  }
  return x;
}

Value Exporter::convolution(Value x) {
  for (Index layer = 0; layer < model_.layers; ++layer) {
    const Value channels = transpose(where(unsqueeze(real_, {2}), x, 0), {0, 2, 1});
    std::vector<Value> parts;
    for (Index i = 0;; ++i) {
      const std::string kernel = fmt::format("convolution.layers.{}.kernels.{}.", layer, i);
      if (!graph_.has(kernel + "weight")) break;
      const Index size = graph_.tensor(kernel + "weight").dim(2);
      parts.push_back(op("Relu", {op("Conv",
                                     {channels, graph_.parameter(kernel + "weight"),
                                      graph_.parameter(kernel + "bias")},
                                     {{"pads", Integers{(size - 1) / 2, size / 2}}})}));
    }
    x = transpose(concat(parts, 1), {0, 2, 1});
  }
  return x;
}

Value Exporter::fixed_length(Value x) {
  const Value zero = graph_.integers({0});
  const Value missing = op("Sub", {graph_.integers({model_.max_length}), tokens_.time});
  const Value all = op("Pad", {where(unsqueeze(real_, {2}), x, 0),
                               concat({zero, zero, zero, zero, missing, zero}, 0)});
  const Value flat = reshape(all, {0, model_.max_length * model_.width});
  const Value y = reshape(feed_forward(flat, "feed_forward"), {0, model_.max_length, model_.width});
  return slice(y, 1, zero, tokens_.time);
}

/// One vector for each token, [batch, time, width].
Value Exporter::contextual() {
  const Value x = embedded(tokens_);
  const Value visible = unsqueeze(real_, {1, 2});
  switch (model_.kind) {
    case ModelKind::encoder:
    case ModelKind::bert:
    case ModelKind::encoder_decoder:
      return transformer(x, "encoder", tokens_, {.visible = visible});
    case ModelKind::decoder:
      return transformer(x, "decoder", tokens_, {.visible = op("And", {visible, causal(tokens_)})});
    case ModelKind::recurrent:
      return recurrent(x);
    case ModelKind::convolution:
      return convolution(x);
    case ModelKind::fixed_length:
      return fixed_length(x);
    case ModelKind::static_embedding:
      break;
  }
  return x;
}

/// One vector for each output token of a translation.
Value Exporter::decoded(const Value& encoded) {
  const Tokens outputs = tokens_of(graph_.input("output_ids", {"batch", "output_time"}));
  return transformer(embedded(outputs), "decoder", outputs,
                     {.visible = causal(outputs),
                      .encoded = encoded,
                      .visible_encoded = unsqueeze(real_, {1, 2}),
                      .time = "output_time"});
}

/// x [batch, time, width], rows [batch] -> [batch, width]
Value Exporter::row_of_each(const Value& x, const Value& rows) {
  return op("GatherND", {x, unsqueeze(rows, {1})}, {{"batch_dims", Index{1}}});
}

/// One vector for each sequence, as `Model::sentence`.
Value Exporter::sentence(const Value& x) {
  const Value real = unsqueeze(real_, {2});
  if (model_.kind == ModelKind::convolution)
    return op("ReduceMax", {where(real, x, -std::numeric_limits<double>::infinity())},
              {{"axes", Integers{1}}, {"keepdims", Index{0}}});
  if (model_.kind == ModelKind::recurrent) {
    const Value last = row_of_each(x, op("Sub", {lengths_, graph_.integer(1)}));
    if (!model_.bidirectional) return last;
    const Value first = op("Gather", {x, graph_.integer(0)}, {{"axis", Index{1}}});
    const Index half = model_.width / 2;
    return concat({slice(last, 1, 0, half), slice(first, 1, half, model_.width)}, 1);
  }
  if (graph_.has("pooler.weight")) {
    const Value first = op("Gather", {x, graph_.integer(0)}, {{"axis", Index{1}}});
    return op("Tanh", {linear(first, "pooler")});
  }
  const Value sum =
      op("ReduceSum", {where(real, x, 0), graph_.integers({1})}, {{"keepdims", Index{0}}});
  const Value count = op("Cast", {lengths_}, {{"to", Index{onnx::TensorProto::FLOAT}}});
  return op("Div", {sum, unsqueeze(count, {1})});
}

Value Exporter::head(const Value& x) {
  Value y = x;
  if (graph_.has("output_transform.linear.weight"))
    y = norm(gelu(linear(y, "output_transform.linear")), "output_transform.norm");
  if (graph_.has("head.weight")) return linear(y, "head");
  const Value logits = times_transposed(y, graph_.parameter("embedding.weight"));
  return graph_.has("output_bias") ? add(logits, graph_.parameter("output_bias")) : logits;
}

Value Exporter::logits(const Value& x) {
  switch (task_) {
    case TaskKind::word_sense:
      return head(row_of_each(x, graph_.input("words", {"batch"})));
    case TaskKind::coreference: {
      const Value words = graph_.input("words", {"batch"});
      const Value query = unsqueeze(head(row_of_each(x, words)), {2});
      const Value scores = op("Squeeze", {op("MatMul", {x, query}), graph_.integers({2})});
      const Value itself = op("Equal", {unsqueeze(tokens_.positions, {0}), unsqueeze(words, {1})});
      return where(op("And", {real_, op("Not", {itself})}),
                   op("Div", {scores, graph_.number(std::sqrt(static_cast<double>(model_.width)))}),
                   -std::numeric_limits<double>::infinity());
    }
    case TaskKind::classify:
      return head(sentence(x));
    case TaskKind::translate:
      return head(decoded(x));
    case TaskKind::static_embedding:
    case TaskKind::language_model:
    case TaskKind::masked_language_model:
    case TaskKind::tagging:
      break;
  }
  return head(x);
}

void Exporter::export_all() {
  tokens_ = tokens_of(graph_.input("ids", {"batch", "time"}));
  lengths_ = graph_.input("lengths", {"batch"});
  real_ = op("Less", {unsqueeze(tokens_.positions, {0}), unsqueeze(lengths_, {1})});
  const Value x = contextual();
  const std::vector<std::string> axes =
      task_ == TaskKind::word_sense || task_ == TaskKind::classify
          ? std::vector<std::string>{"batch", classes()}
      : task_ == TaskKind::coreference ? std::vector<std::string>{"batch", "time"}
      : task_ == TaskKind::translate   ? std::vector<std::string>{"batch", "output_time", classes()}
                                       : std::vector<std::string>{"batch", "time", classes()};
  graph_.output("logits", logits(x), axes);
  graph_.output("contextual", x, {"batch", "time", std::to_string(model_.width)});
  for (const auto& [name, value, value_axes] : weights_) graph_.output(name, value, value_axes);
}

/// Throws unless the library finds every operator, type and shape right.
void check(onnx::ModelProto& model) {
  try {
    onnx::checker::check_model(model);
    onnx::ModelProto inferred = model;
    onnx::shape_inference::InferShapes(inferred, onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions(true, 1, true));
  } catch (const std::exception& error) {
    throw FileError(fmt::format("the ONNX library finds the model invalid: {}", error.what()));
  }
}

}  // namespace

std::string onnx_bytes(const LoadedModel& model,
                       const std::map<std::string, std::string>& metadata) {
  onnx::ModelProto file;
  file.set_ir_version(ir_version);
  file.set_producer_name("qkv");
  file.set_producer_version(QKV_VERSION);
  file.add_opset_import()->set_version(operator_set);
  for (const auto& [key, value] : metadata) {
    onnx::StringStringEntryProto& entry = *file.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  file.mutable_graph()->set_name(model.config.name);
  const auto parameters = state_of(*model.network);
  Exporter(model, parameters, *file.mutable_graph()).export_all();
  check(file);
  return file.SerializeAsString();
}

bool begins_as_onnx_export(std::string_view beginning) {
  onnx::ModelProto file;
  file.set_ir_version(ir_version);
  file.set_producer_name("qkv");
  return beginning.starts_with(file.SerializeAsString());
}

}  // namespace qkv
