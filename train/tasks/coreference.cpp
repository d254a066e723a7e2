#include "train/tasks/coreference.h"

#include <cmath>
#include <limits>

namespace qkv {
namespace {

/// -inf at padding and at the pronoun itself, which cannot be the answer, else 0: [B, T].
Tensor excluded(const Indices& lengths, const Indices& pronouns, Index time, DType dtype) {
  std::vector<double> values;
  for (std::size_t b = 0; b < lengths.data().size(); ++b)
    for (Index t = 0; t < time; ++t) {
      const bool possible = t < lengths.data()[b] && t != pronouns.data()[b];
      values.push_back(possible ? 0 : -std::numeric_limits<double>::infinity());
    }
  return Tensor::from(values, {lengths.size(), time}, dtype);
}

}  // namespace

const SentenceTask::Question Coreference::question = {.columns = coreference_columns,
                                                      .parse = parse_coreference,
                                                      .has_labels = false,
                                                      .about_a_word = true,
                                                      .formula = "y_j . (W y_i + b) / sqrt(D)"};

Coreference::Coreference(const Config& config, const Vocabularies& known, ReadCallback& callback)
    : SentenceTask(config, question, known, callback), width_(config.model.width) {}

Coreference::Coreference(const Config& config, const Vocabularies& vocabularies)
    : SentenceTask(config, vocabularies, question), width_(config.model.width) {}

Tensor Coreference::logits(const Network& network, const Batch& batch, Context& context) const {
  const Tensor x = (*network.model)(batch.ids, batch.lengths, context);
  const Index sentences = x.dim(0), time = x.dim(1);
  require<UserError>(time > 1, "the sentence has no other word that the pronoun could refer to");
  const Tensor query =
      reshape(network.logits(select_rows(x, batch.indices)), {sentences, width_, 1});
  const Tensor scores = reshape(matmul(x, query), {sentences, time});
  return scores / std::sqrt(static_cast<double>(width_)) +
         excluded(batch.lengths, batch.indices, time, x.dtype());
}

}  // namespace qkv
