#pragma once

#include "train/tasks/sentence_task.h"

namespace qkv {

/// Which sense does a word have in its sentence? The word's contextual vector goes through the
/// output layer.
class WordSense final : public SentenceTask {
 public:
  explicit WordSense(const Config& config);
  WordSense(const Config& config, const Vocabularies& vocabularies);

 private:
  static const Question question;

  Tensor logits(const Network& network, const Batch& batch, Context& context) const override;
};

}  // namespace qkv
