#include "train/inference/attention.h"

#include "layers/transformer.h"

namespace qkv {
namespace {

/// Recorded weights of one sentence [1, head, query, key] -> [head, query, key], float64.
Tensor by_head(const Tensor& weights) {
  return weights.to(DType::float64).with_shape({weights.dim(1), weights.dim(2), weights.dim(3)});
}

/// The weights of a stack's self-attention, or with `cross` of its cross-attention, as recorded.
LayerWeights attention_of(const Recorder& recorder, const Transformer& stack, bool cross = false) {
  LayerWeights layers;
  for (const TransformerBlock& block : stack.layers)
    layers.push_back(
        by_head(recorder.at(cross ? *block.cross_attention : block.attention, "weights")));
  return layers;
}

}  // namespace

LayerWeights self_attention(const Recorder& recorder) {
  LayerWeights layers;
  for (const Recorder::Record& record : recorder.all())
    if (record.name == "weights" && recorder.at(record.module + ".cross").item() == 0)
      layers.push_back(by_head(record.value));
  return layers;
}

TextAttention attention_in(Network& network, const Sentence& sentence, const Recorder& recorder) {
  if (!sentence.written) return {sentence.words, self_attention(recorder), {}, {}, {}, {}};
  const auto stacks = modules<Transformer>(network);
  const Transformer &encoder = *stacks.front().second, &decoder = *stacks.back().second;
  return {sentence.words,
          attention_of(recorder, encoder),
          sentence.written->inputs,
          sentence.written->outputs,
          attention_of(recorder, decoder),
          attention_of(recorder, decoder, true)};
}

}  // namespace qkv
