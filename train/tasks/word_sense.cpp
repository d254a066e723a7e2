#include "train/tasks/word_sense.h"

namespace qkv {

Tensor WordSense::logits(const Network& network, const Batch& batch, Context& context) const {
  return network.logits(
      select_rows((*network.model)(batch.ids, batch.lengths, context), batch.rows));
}

std::vector<Prediction> WordSense::predict(const Network& network, std::string_view text) const {
  return predictions(network, text);
}

}  // namespace qkv
