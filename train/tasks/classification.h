#pragma once

#include "train/tasks/sentence_task.h"

namespace qkv {

/// Which class does a text belong to? The text's vector (`Model::sentence`) goes through the output
/// layer.
class Classification final : public SentenceTask {
 public:
  explicit Classification(const Config& config);
  Classification(const Config& config, const Vocabularies& vocabularies);

 private:
  static const Question question;

  Tensor logits(const Network& network, const Batch& batch, Context& context) const override;
};

}  // namespace qkv
