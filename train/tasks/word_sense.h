#pragma once

#include "train/tasks/sentence_task.h"

namespace qkv {

/// Which sense does a word have in its sentence? The word's contextual vector goes through the
/// output layer.
class WordSense final : public SentenceTask {
 public:
  WordSense(const Config& config, const Vocabularies& known, ReadCallback& callback)
      : SentenceTask(config, question, known, callback) {}
  WordSense(const Config& config, const Vocabularies& vocabularies)
      : SentenceTask(config, vocabularies, question) {}

 private:
  static inline const Question question = {.columns = word_sense_columns,
                                           .parse = parse_labelled,
                                           .has_labels = true,
                                           .about_a_word = true,
                                           .formula = "W y_i + b"};

  Tensor logits(const Network& network, const Batch& batch, Context& context) const override {
    return network.logits(
        select_rows((*network.model)(batch.ids, batch.lengths, context), batch.indices));
  }
};

}  // namespace qkv
