#include "train/tasks/classification.h"

namespace qkv {

const SentenceTask::Question Classification::question = {.columns = classify_columns,
                                                         .parse = parse_labelled,
                                                         .has_labels = true,
                                                         .about_a_word = false,
                                                         .formula = "W mean(y) + b"};

Classification::Classification(const Config& config) : SentenceTask(config, question) {}

Classification::Classification(const Config& config, const Vocabularies& vocabularies)
    : SentenceTask(config, vocabularies, question) {}

Tensor Classification::logits(const Network& network, const Batch& batch, Context& context) const {
  const Model& model = *network.model;
  return network.logits(model.sentence(model(batch.ids, batch.lengths, context), batch.lengths));
}

}  // namespace qkv
