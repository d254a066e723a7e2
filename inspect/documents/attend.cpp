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
  SentenceAttention attention{qkv::attention_in(*trained.network, sentence, recorder), {}, {}};
  if (!attention.layers.empty()) attention.rollout = rollout(attention.layers);
  if (!attention.cross.empty()) attention.alignment = mean(attention.cross.back(), 0);
  return attention;
}

Json attend(const SentenceAttention& attention) {
  Json json = object({{"tokens", attention.tokens}, {"layers", weights_of(attention.layers)}});
  if (attention.rollout) json["rollout"] = to_json(attention.rollout);
  if (attention.alignment) {
    json["inputs"] = attention.inputs;
    json["outputs"] = attention.outputs;
    json["decoder"] = weights_of(attention.decoder);
    json["cross"] = weights_of(attention.cross);
    json["alignment"] = to_json(attention.alignment);
  }
  return json;
}

}  // namespace qkv::documents
