#include "train/tasks/word_sense.h"

namespace qkv {

const SentenceTask::Question WordSense::question = {.columns = word_sense_columns,
                                                    .parse = parse_labelled,
                                                    .has_labels = true,
                                                    .about_a_word = true,
                                                    .formula = "W y_i + b"};

WordSense::WordSense(const Config& config) : SentenceTask(config, question) {}

WordSense::WordSense(const Config& config, const Vocabularies& vocabularies)
    : SentenceTask(config, vocabularies, question) {}

Tensor WordSense::logits(const Network& network, const Batch& batch, Context& context) const {
  return network.logits(
      select_rows((*network.model)(batch.ids, batch.lengths, context), batch.indices));
}

}  // namespace qkv
