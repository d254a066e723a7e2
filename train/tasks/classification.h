#pragma once

#include "train/tasks/sentence_task.h"

namespace qkv {

/// Which class does a text belong to? The text's vector (`Model::sentence`) goes through the output
/// layer.
class Classification final : public SentenceTask {
 public:
  Classification(const Config& config, const Vocabularies& known, ReadCallback& callback)
      : SentenceTask(config, question, known, callback) {}
  Classification(const Config& config, const Vocabularies& vocabularies)
      : SentenceTask(config, vocabularies, question) {}

 private:
  static inline const Question question = {.columns = classify_columns,
                                           .parse = parse_labelled,
                                           .has_labels = true,
                                           .about_a_word = false,
                                           .formula = "W mean(y) + b"};

  Tensor logits(const Network& network, const Batch& batch, Context& context) const override {
    const Model& model = *network.model;
    return network.logits(model.sentence(model(batch.ids, batch.lengths, context), batch.lengths));
  }
};

}  // namespace qkv
