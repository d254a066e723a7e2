#include <cmath>
#include <limits>

#include "train/tasks/sentence_task.h"

namespace qkv {
namespace {

using Batch = SentenceTask::Batch;

Tensor sense_logits(const Network& network, const Batch& batch, Context& context) {
  return network.logits(
      select_rows((*network.model)(batch.ids, batch.lengths, context), batch.indices));
}

Tensor class_logits(const Network& network, const Batch& batch, Context& context) {
  const Model& model = *network.model;
  return network.logits(model.sentence(model(batch.ids, batch.lengths, context), batch.lengths));
}

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

Tensor antecedent_logits(const Network& network, const Batch& batch, Context& context) {
  const Tensor x = (*network.model)(batch.ids, batch.lengths, context);
  const Index sentences = x.dim(0), time = x.dim(1), width = x.dim(2);
  require<UserError>(time > 1, "the sentence has no other word that the pronoun could refer to");
  const Tensor query =
      reshape(network.logits(select_rows(x, batch.indices)), {sentences, width, 1});
  const Tensor scores = reshape(matmul(x, query), {sentences, time});
  return scores / std::sqrt(static_cast<double>(width)) +
         excluded(batch.lengths, batch.indices, time, x.dtype());
}

}  // namespace

const SentenceTask::Question word_sense_question = {.columns = word_sense_columns,
                                                    .parse = parse_labelled,
                                                    .has_labels = true,
                                                    .about_a_word = true,
                                                    .formula = "W y_i + b",
                                                    .logits = sense_logits};

const SentenceTask::Question class_question = {.columns = classify_columns,
                                               .parse = parse_labelled,
                                               .has_labels = true,
                                               .about_a_word = false,
                                               .formula = "W mean(y) + b",
                                               .logits = class_logits};

const SentenceTask::Question antecedent_question = {.columns = coreference_columns,
                                                    .parse = parse_coreference,
                                                    .has_labels = false,
                                                    .about_a_word = true,
                                                    .formula = "y_j . (W y_i + b) / sqrt(D)",
                                                    .logits = antecedent_logits};

}  // namespace qkv
