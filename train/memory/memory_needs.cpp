#include "train/memory/memory_needs.h"

#include <algorithm>

#include "core/memory_limit.h"
#include "optim/optimizer.h"
#include "train/config/task_kinds.h"
#include "train/tasks/network.h"

namespace qkv {
namespace {

constexpr double bytes_per_value = 4;

/// The tokens of a chunk, at least.
double tokens_in_chunk(const Config& config) {
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

double parameter_count(ModelOptions options, const HeadOptions& head, Index vocabulary,
                       Index outputs) {
  // Both have the shapes of a learned table, and would read a file or demand a width.
  options.embedding = EmbeddingKind::learned;
  options.embedding_file.clear();
  const WithoutStorage without_storage;
  Network network(options, head, vocabulary, outputs, Random(0, Purpose::initialisation));
  return static_cast<double>(parameter_count(network));
}

MemoryNeeds memory_needs(const Config& config, Index vocabulary, Index outputs) {
  MemoryNeeds needs;
  needs.parameters = parameter_count(config.model, config.head, vocabulary, outputs);
  const Parameter weight(Tensor::zeros({1, 1}));  // no parameter has fewer slots
  const auto slots = static_cast<double>(make_optimizer(config.optimizer)->slots(weight));
  needs.gradients = bytes_per_value * needs.parameters;
  needs.state = needs.gradients * (1 + slots + (config.train.ema > 0 ? 1 : 0));
  needs.checkpoint = needs.state;
  needs.activations = activation_bytes(config, outputs, tokens_in_chunk(config), true);
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

void require_network_memory(const ModelOptions& options, const HeadOptions& head, Index vocabulary,
                            Index outputs, std::uint64_t limit) {
  const double parameters = parameter_count(options, head, vocabulary, outputs),
               bytes = bytes_per_value * parameters;
  require<UserError>(
      bytes <= static_cast<double>(limit),
      "the model has {:.4g} parameters, which take {} of memory, and the process can "
      "have {}; lower model.width, model.feed_forward or model.layers",
      parameters, memory_size(bytes), memory_size(static_cast<double>(limit)));
}

}  // namespace qkv
