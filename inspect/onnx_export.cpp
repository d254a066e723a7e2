#include "inspect/onnx_export.h"

#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kinds.h"
#include "inspect/onnx_layers.h"

namespace qkv {
namespace {

using onnx_export::Integers;
using onnx_export::Tokens;
using onnx_export::Value;

constexpr Index ir_version = 8, operator_set = 17;
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// Builds the graph of a model and its task.
class Exporter : public onnx_export::Layers {
 public:
  Exporter(const LoadedModel& model, const std::map<std::string, Tensor>& parameters,
           onnx::GraphProto& graph)
      : Layers(model.config.model, parameters, graph),
        model_(model.config.model),
        task_(model.config.task.kind),
        outputs_(std::to_string(model.task->outputs())) {}

  void export_all();

  // From embeddings to one vector for each token, [batch, time, width].
  Value encoder(const Value& x) { return transformer(x, "encoder", tokens_, {.visible = keys()}); }
  Value decoder(const Value& x) {
    return transformer(x, "decoder", tokens_, {.visible = op("And", {keys(), causal(tokens_)})});
  }
  Value recurrent(const Value& x) { return Layers::recurrent(x, lengths_); }
  Value convolution(const Value& x) { return Layers::convolution(x, real_); }
  Value fixed_length(const Value& x) { return Layers::fixed_length(x, real_, tokens_); }
  Value unchanged(const Value& x) { return x; }

  // From the vectors of tokens to one vector for each sequence, [batch, width].
  Value mean(const Value& x) {
    const Value sum = op("ReduceSum", {where(unsqueeze(real_, {2}), x, 0), integers({1})},
                         {{"keepdims", Index{0}}});
    const Value count = op("Cast", {lengths_}, {{"to", Index{onnx::TensorProto::FLOAT}}});
    return op("Div", {sum, unsqueeze(count, {1})});
  }
  Value pooled(const Value& x) {
    return has("pooler.weight") ? op("Tanh", {linear(first_row(x), "pooler")}) : mean(x);
  }
  /// The last state of each direction.
  Value last_states(const Value& x) {
    const Value last = row_of_each(x, op("Sub", {lengths_, integer(1)}));
    if (!model_.bidirectional) return last;
    const Index half = model_.width / 2;
    return concat({slice(last, 1, 0, half), slice(first_row(x), 1, half, model_.width)}, 1);
  }
  Value largest(const Value& x) {
    return op("ReduceMax", {where(unsqueeze(real_, {2}), x, minus_infinity)},
              {{"axes", Integers{1}}, {"keepdims", Index{0}}});
  }

  // From the vectors of tokens to logits.
  Value of_each(const Value& x) {
    Value y = x;
    if (has("output_transform.linear.weight"))
      y = norm(activated(linear(y, "output_transform.linear")), "output_transform.norm");
    if (has("head.weight")) return linear(y, "head");
    const Value logits = times_transposed(y, parameter("embedding.weight"));
    return has("output_bias") ? add(logits, parameter("output_bias")) : logits;
  }
  Value of_word(const Value& x) { return of_each(row_of_each(x, words())); }
  Value of_sequence(const Value& x);
  /// Scores of all words but the asked one as its antecedent.
  Value of_antecedents(const Value& x) {
    const Value asked = words();
    const Value query = unsqueeze(of_each(row_of_each(x, asked)), {2});
    const Value scores = op("Squeeze", {op("MatMul", {x, query}), integers({2})});
    const Value itself = op("Equal", {unsqueeze(tokens_.positions, {0}), unsqueeze(asked, {1})});
    return where(op("And", {real_, op("Not", {itself})}),
                 op("Div", {scores, number(std::sqrt(static_cast<double>(model_.width)))}),
                 minus_infinity);
  }
  /// Logits of each output token, from the encoder's vectors x.
  Value of_translation(const Value& x) {
    const Tokens outputs = tokens_of(input("output_ids", {"batch", "output_time"}));
    return of_each(transformer(embedded(outputs), "decoder", outputs,
                               {.visible = causal(outputs),
                                .encoded = x,
                                .visible_encoded = keys(),
                                .time = "output_time"}));
  }

 private:
  /// The keys that are no padding, [batch, 1, 1, key].
  Value keys() { return unsqueeze(real_, {1, 2}); }
  Value words() { return input("words", {"batch"}); }
  /// x [batch, time, width], rows [batch] -> [batch, width]
  Value row_of_each(const Value& x, const Value& rows) {
    return op("GatherND", {x, unsqueeze(rows, {1})}, {{"batch_dims", Index{1}}});
  }
  Value first_row(const Value& x) { return op("Gather", {x, integer(0)}, {{"axis", Index{1}}}); }

  const ModelOptions& model_;
  TaskKind task_;
  std::string outputs_;
  Tokens tokens_;
  Value lengths_;  ///< [batch]
  Value real_;     ///< which tokens are no padding [batch, time]
};

using Step = Value (Exporter::*)(const Value&);

/// How a kind of model computes the vectors of tokens and of a sequence.
struct ModelSteps {
  ModelKind value;
  Step contextual, sequence;
};
constexpr auto model_steps = std::to_array<ModelSteps>({
    {ModelKind::encoder, &Exporter::encoder, &Exporter::pooled},
    {ModelKind::bert, &Exporter::encoder, &Exporter::pooled},
    {ModelKind::decoder, &Exporter::decoder, &Exporter::pooled},
    {ModelKind::encoder_decoder, &Exporter::encoder, &Exporter::pooled},
    {ModelKind::recurrent, &Exporter::recurrent, &Exporter::last_states},
    {ModelKind::convolution, &Exporter::convolution, &Exporter::largest},
    {ModelKind::fixed_length, &Exporter::fixed_length, &Exporter::mean},
    {ModelKind::static_embedding, &Exporter::unchanged, &Exporter::mean},
});
static_assert(lists_every_kind(model_steps));

/// How a kind of task computes its logits, and their axes; {} stands for the number of outputs.
struct TaskSteps {
  TaskKind value;
  Step logits;
  std::array<std::string_view, 3> axes;
};
constexpr auto task_steps = std::to_array<TaskSteps>({
    {TaskKind::word_sense, &Exporter::of_word, {"batch", "{}"}},
    {TaskKind::static_embedding, &Exporter::of_each, {"batch", "time", "{}"}},
    {TaskKind::classify, &Exporter::of_sequence, {"batch", "{}"}},
    {TaskKind::coreference, &Exporter::of_antecedents, {"batch", "time"}},
    {TaskKind::translate, &Exporter::of_translation, {"batch", "output_time", "{}"}},
    {TaskKind::language_model, &Exporter::of_each, {"batch", "time", "{}"}},
    {TaskKind::tagging, &Exporter::of_each, {"batch", "time", "{}"}},
    {TaskKind::masked_language_model, &Exporter::of_each, {"batch", "time", "{}"}},
});
static_assert(lists_every_kind(task_steps));

Value Exporter::of_sequence(const Value& x) {
  return of_each((this->*row_of(model_steps, model_.kind).sequence)(x));
}

void Exporter::export_all() {
  tokens_ = tokens_of(input("ids", {"batch", "time"}));
  lengths_ = input("lengths", {"batch"});
  real_ = op("Less", {unsqueeze(tokens_.positions, {0}), unsqueeze(lengths_, {1})});
  const Value x = (this->*row_of(model_steps, model_.kind).contextual)(embedded(tokens_));
  const TaskSteps& task = row_of(task_steps, task_);
  std::vector<std::string> axes;
  for (const std::string_view axis : task.axes)
    if (!axis.empty()) axes.emplace_back(axis == "{}" ? outputs_ : axis);
  output("logits", (this->*task.logits)(x), axes);
  output("contextual", x, {"batch", "time", std::to_string(model_.width)});
  for (const auto& [name, value, weight_axes] : attention_weights())
    output(name, value, weight_axes);
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
