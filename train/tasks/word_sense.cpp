#include "train/tasks/word_sense.h"

namespace qkv {

Tensor WordSense::logits(const Network& network, const Batch& batch, Context& context) const {
  return network.logits(
      select_rows((*network.model)(batch.ids, batch.lengths, context), batch.rows));
}

std::vector<Prediction> WordSense::predict(const Network& network, std::string_view text) const {
  const Sentence sentence = read(text);
  require_targets(sentence, text);
  std::vector<Prediction> predictions;
  for (const Index target : sentence.targets) {
    const auto [index, probability] = choose(network, sentence, target);
    predictions.push_back({std::string(text), target, label(index), probability});
  }
  return predictions;
}

}  // namespace qkv
