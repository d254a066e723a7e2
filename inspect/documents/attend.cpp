#include "inspect/documents/attend.h"

namespace qkv::documents {
namespace {

Json weights_of(const LayerWeights& layers) {
  Json list = Json::array();
  for (const Tensor& layer : layers) {
    Json entropies = Json::array();
    for (Index h = 0; h < layer.dim(0); ++h)
      entropies.push_back(entropy(weights_of_head(layer, h)));
    list.push_back(object({{"heads", to_json(layer)}, {"entropy", entropies}}));
  }
  return list;
}

}  // namespace

SentenceAttention attention_in(const LoadedModel& trained, const Sentence& sentence,
                               const Recorder& recorder) {
  SentenceAttention attention;
  const auto stacks = stacks_of(*trained.network);
  attention.layers =
      sentence.written ? attention_of(recorder, *stacks.front().second) : self_attention(recorder);
  if (!attention.layers.empty()) attention.rollout = rollout(attention.layers);
  if (!sentence.written) return attention;
  attention.decoder = attention_of(recorder, *stacks.back().second);
  attention.cross = attention_of(recorder, *stacks.back().second, true);
  attention.alignment = mean(attention.cross.back(), 0);
  return attention;
}

Json attend(const Sentence& sentence, const SentenceAttention& attention) {
  Json json = object({{"tokens", sentence.words}, {"layers", weights_of(attention.layers)}});
  if (attention.rollout) json["rollout"] = to_json(attention.rollout);
  if (const auto& written = sentence.written) {
    json["inputs"] = written->inputs;
    json["outputs"] = written->outputs;
    json["decoder"] = weights_of(attention.decoder);
    json["cross"] = weights_of(attention.cross);
    json["alignment"] = to_json(attention.alignment);
  }
  return json;
}

}  // namespace qkv::documents
