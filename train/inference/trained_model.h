#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "train/tasks/prediction.h"
#include "train/tasks/sampling.h"

namespace qkv {

struct SavedModel;

/// The tokens of a text and a vector of each, before and after the model has read the text.
struct TextVectors {
  std::vector<std::string> tokens;  ///< T
  Tensor static_vectors;            ///< [T, D]
  Tensor contextual;                ///< [T, D]
};

/// The attention weights of a text by layer, [heads, query, key], float64; a row sums to 1.
using LayerWeights = std::vector<Tensor>;

/// The attention of a text's tokens to one another, and of the text that an encoder-decoder writes
/// for it. What a model does not have is empty.
struct TextAttention {
  std::vector<std::string> tokens;           ///< of the text
  LayerWeights layers;                       ///< of the text to itself
  std::vector<std::string> inputs, outputs;  ///< of the written text
  LayerWeights decoder, cross;               ///< of the written text to itself, and to the text
};

/// A model that `qkv train` or `qkv import` wrote, with all that it takes to read texts and answer.
/// The answers are those of the program's commands. Nothing in it changes: threads may share it.
class TrainedModel {
 public:
  explicit TrainedModel(SavedModel model);
  /// An ensemble: `predict` averages the probabilities of its models, and all else is about the
  /// first.
  explicit TrainedModel(std::vector<SavedModel> models);
  TrainedModel(TrainedModel&&) noexcept;
  TrainedModel& operator=(TrainedModel&&) noexcept;
  ~TrainedModel();

  /// The labels that it chooses from, in the order of probabilities; empty: it has none.
  const std::vector<std::string>& labels() const;
  /// Updates that it was trained for.
  std::int64_t step() const;
  /// Whether it is a language model that `generate` takes.
  bool continues() const;

  /// One answer for each word of a text that the task asks about, or one for the whole text
  /// (`qkv predict`). Throws UserError when the text is empty, too long or about nothing.
  std::vector<Prediction> predict(std::string_view text) const;
  /// The predictions of many texts, with the bits of `predict` of each: texts of similar length are
  /// computed side by side, in the memory of the caller's `MemoryPool` where there is one.
  std::vector<TextPredictions> predict(std::span<const std::string> texts) const;
  /// Throws UserError as `predict`, as do the following (`qkv embed`).
  TextVectors embed(std::string_view text) const;
  /// `qkv attend`
  TextAttention attend(std::string_view text) const;
  /// The text with which a language model continues `prompt`, by at most `tokens` tokens; each
  /// token's text is passed on as soon as it is sampled (`qkv generate`). Of a prompt that is
  /// longer than the model reads, the end counts. Throws UserError when the prompt has no token or
  /// the model does not continue texts.
  std::string generate(
      std::string_view prompt, Index tokens, const Sampling& sampling = {},
      const std::function<void(std::string_view)>& pass_on = [](std::string_view) {}) const;
  /// The texts with which `generate` continues each of many prompts: those of equal length are
  /// computed side by side.
  std::vector<std::string> generate(std::span<const std::string> prompts, Index tokens,
                                    const Sampling& sampling = {}) const;

  /// Config, task and network (train/run/run.h).
  const SavedModel& parts() const;

 private:
  std::vector<SavedModel> models_;
};

/// Loads a run folder, with the runs in its folder `ensemble`, or a checkpoint file. Throws
/// UserError when there is none, and CheckpointError when it is damaged.
TrainedModel load(const std::filesystem::path& run);

}  // namespace qkv
