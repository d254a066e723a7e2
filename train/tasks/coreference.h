#pragma once

#include "train/tasks/sentence_task.h"

namespace qkv {

/// Which word does a pronoun refer to? The logit of word t is the product of its contextual vector
/// with the pronoun's after the output layer, x_t (W x_pronoun + b) / sqrt(D), as in a pointer
/// network (Vinyals et al. 2015), with a dot product instead of additive attention.
class Coreference final : public SentenceTask {
 public:
  Coreference(const Config& config, const Vocabularies& known, ReadCallback& callback);
  Coreference(const Config& config, const Vocabularies& vocabularies);

  /// The output layer maps vectors to vectors.
  Index outputs() const override { return width_; }

 private:
  static const Question question;

  Tensor logits(const Network& network, const Batch& batch, Context& context) const override;

  Index width_;
};

}  // namespace qkv
