#include "train/memory/memory_needs.h"

#include <algorithm>

#include "core/memory_limit.h"
#include "layers/recurrent.h"
#include "optim/optimizer.h"
#include "train/config/task_kinds.h"

namespace qkv {
namespace {

constexpr double bytes_per_value = 4;

double linear_parameters(double in, double out, bool bias) {
  return in * out + (bias ? out : 0);
}

double feed_forward_parameters(double width, double hidden, bool bias) {
  return linear_parameters(width, hidden, bias) + linear_parameters(hidden, width, bias);
}

/// Keys and values may have fewer heads than queries.
double attention_parameters(const ModelOptions& m) {
  if (m.attention == AttentionKind::parameter_free) return 0;
  const auto width = static_cast<double>(m.width);
  const double keys =
      m.kv_heads ? width / static_cast<double>(m.heads) * static_cast<double>(m.kv_heads) : width;
  const double scores =
      m.attention == AttentionKind::uniform
          ? 0
          : linear_parameters(width, width, m.bias) + linear_parameters(width, keys, m.bias);
  return scores + linear_parameters(width, keys, m.bias) + linear_parameters(width, width, m.bias);
}

/// A stack of blocks, with cross-attention or without.
double stack_parameters(ModelOptions m, bool cross) {
  const auto width = static_cast<double>(m.width);
  if (cross && m.attention == AttentionKind::parameter_free) m.attention = AttentionKind::learned;
  if (m.attention == AttentionKind::parameter_free) return 0;
  const double norm = m.norm == NormKind::none ? 0 : width * (m.bias ? 2 : 1);
  double block = attention_parameters(m) + norm;
  const bool biased = m.position == PositionKind::relative || m.position == PositionKind::windows;
  if (biased && m.attention == AttentionKind::learned)
    block += static_cast<double>(m.heads * (2 * m.max_distance + 1));
  if (cross) block += attention_parameters(m) + norm;
  if (m.feed_forward)
    block += feed_forward_parameters(width, static_cast<double>(m.feed_forward), m.bias) + norm;
  return static_cast<double>(m.layers) * block + (m.norm == NormKind::pre ? norm : 0);
}

double transformer_parameters(const ModelOptions& m) {
  const bool both = m.kind == ModelKind::encoder_decoder;
  const double positions = m.position == PositionKind::learned
                               ? static_cast<double>(m.max_length) * static_cast<double>(m.width)
                               : 0;
  const auto width = static_cast<double>(m.width);
  const double input = static_cast<double>(m.token_types) * width +
                       (m.embedding_norm ? width * (m.bias ? 2 : 1) : 0);
  const double pooler =
      m.pooling == PoolingKind::first ? linear_parameters(width, width, m.bias) : 0;
  return positions + input + pooler + stack_parameters(m, false) +
         (both ? stack_parameters(m, true) : 0);
}

double recurrent_parameters(const ModelOptions& m) {
  const double directions = m.bidirectional ? 2 : 1;
  const auto width = static_cast<double>(m.width);
  const double state = width / directions,
               rows = static_cast<double>(row_of(cell_kinds(), m.cell).gates) * state;
  return static_cast<double>(m.layers) * directions * rows * (width + state + 2);
}

/// Kernels of 3, 4 and 5 tokens, each with a third of the outputs.
double convolution_parameters(const ModelOptions& m) {
  double layer = static_cast<double>(m.width);
  for (Index i = 0; i < 3; ++i) {
    const Index outputs = m.width * (i + 1) / 3 - m.width * i / 3;
    layer += static_cast<double>(outputs * m.width * (i + 3));
  }
  return static_cast<double>(m.layers) * layer;
}

double layers_parameters(const ModelOptions& m) {
  switch (m.kind) {
    case ModelKind::encoder:
    case ModelKind::decoder:
    case ModelKind::encoder_decoder:
      return transformer_parameters(m);
    case ModelKind::recurrent:
      return recurrent_parameters(m);
    case ModelKind::convolution:
      return convolution_parameters(m);
    case ModelKind::fixed_length:
      return feed_forward_parameters(static_cast<double>(m.max_length * m.width),
                                     static_cast<double>(m.feed_forward), m.bias);
    case ModelKind::static_embedding:
      return 0;
  }
  return 0;
}

/// Of `OutputTransform`, with the bias of tied weights.
double transform_parameters(const ModelOptions& m, double vocabulary) {
  if (m.output == OutputKind::linear) return 0;
  const auto width = static_cast<double>(m.width);
  return linear_parameters(width, width, m.bias) + width * (m.bias ? 2 : 1) +
         (m.tied && m.bias ? vocabulary : 0);
}

/// The tokens of a chunk, at least.
double chunk_tokens(const Config& config) {
  constexpr double most = 256;
  // Only of a language model the length of an example is known without the data.
  const double length = config.task.kind == TaskKind::language_model
                            ? static_cast<double>(config.model.max_length)
                            : 1;
  return std::max(length, std::min(most, length * static_cast<double>(config.train.batch) / 2));
}

/// The options that what takes most depends on.
std::string_view what_to_lower(const MemoryNeeds& needs) {
  if (needs.order > needs.total() / 2) return "train.batch or train.accumulate";
  if (needs.activations > needs.total() / 2) return "train.batch, model.max_length or model.width";
  return "model.width, model.feed_forward or model.layers, or raise task.min_count";
}

}  // namespace

double activation_bytes(const Config& config, Index outputs, double tokens, bool recomputed) {
  const ModelOptions& m = config.model;
  const auto width = static_cast<double>(m.width), layers = static_cast<double>(m.layers);
  const double of_layer =
      (is_transformer(m.kind) ? 6 : 1) * width + static_cast<double>(m.feed_forward);
  const double kept = layers * (recomputed && is_transformer(m.kind) ? width : of_layer);
  // Logits and their gradient.
  const bool every_token = row_of(task_kinds(), config.task.kind).traits.predicts_words;
  const double of_output = every_token ? 2 * static_cast<double>(outputs) : 0;
  return bytes_per_value * tokens * (kept + std::max(2 * of_layer, of_output));
}

std::optional<double> memory_budget(const TrainOptions& train) {
  return train.memory.empty() ? std::nullopt : parse_memory_size(train.memory);
}

double parameter_count(const ModelOptions& options, Index vocabulary, Index outputs) {
  const auto width = static_cast<double>(options.width);
  const double head =
      options.tied ? 0 : linear_parameters(width, static_cast<double>(outputs), options.bias);
  const auto rows = static_cast<double>(vocabulary);
  return rows * width + layers_parameters(options) + head + transform_parameters(options, rows);
}

MemoryNeeds memory_needs(const Config& config, Index vocabulary, Index outputs) {
  MemoryNeeds needs;
  needs.parameters = parameter_count(config.model, vocabulary, outputs);
  const Parameter weight(Tensor::zeros({1, 1}));  // no parameter has fewer slots
  const auto slots = static_cast<double>(make_optimizer(config.optimizer)->slots(weight));
  needs.gradients = bytes_per_value * needs.parameters;
  needs.state = needs.gradients * (1 + slots + (config.train.ema > 0 ? 1 : 0));
  needs.checkpoint = needs.state;
  needs.activations = activation_bytes(config, outputs, chunk_tokens(config), true);
  needs.order = static_cast<double>(sizeof(Index)) * static_cast<double>(config.train.batch) *
                static_cast<double>(config.train.accumulate);
  return needs;
}

void require_training_memory(const Config& config, Index vocabulary, Index outputs,
                             std::uint64_t limit) {
  const MemoryNeeds needs = memory_needs(config, vocabulary, outputs);
  const auto available = static_cast<double>(limit);
  const double budget = memory_budget(config.train).value_or(available);
  if (needs.total() <= std::min(available, budget)) return;
  throw UserError(fmt::format(
      "training takes at least {} of memory, and {} {}: {} for weights and optimizer, {} for "
      "gradients, {} to write a checkpoint, {} for activations, {} for the order of examples; "
      "lower {}",
      memory_size(needs.total()), budget < available ? "train.memory is" : "the process can have",
      memory_size(std::min(available, budget)), memory_size(needs.state),
      memory_size(needs.gradients), memory_size(needs.checkpoint), memory_size(needs.activations),
      memory_size(needs.order), what_to_lower(needs)));
}

void require_network_memory(const ModelOptions& options, Index vocabulary, Index outputs,
                            std::uint64_t limit) {
  const double parameters = parameter_count(options, vocabulary, outputs),
               bytes = bytes_per_value * parameters;
  require<UserError>(
      bytes <= static_cast<double>(limit),
      "the model has {:.4g} parameters, which take {} of memory, and the process can "
      "have {}; lower model.width, model.feed_forward or model.layers",
      parameters, memory_size(bytes), memory_size(static_cast<double>(limit)));
}

}  // namespace qkv
