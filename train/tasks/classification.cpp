#include "train/tasks/classification.h"

namespace qkv {

Tensor Classification::logits(const Network& network, const Batch& batch, Context& context) const {
  const Model& model = *network.model;
  return network.logits(model.sentence(model(batch.ids, batch.lengths, context), batch.lengths));
}

std::vector<Prediction> Classification::predict(const Network& network,
                                                std::string_view text) const {
  return predictions(network, text);
}

}  // namespace qkv
