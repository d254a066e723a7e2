#include "train/tasks/coreference.h"

#include <cmath>
#include <limits>

namespace qkv {
namespace {

/// -inf where a word cannot be the answer, being padding or the pronoun itself, else 0: [B, T].
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

Coreference::Coreference(const Config& config) : SentenceTask(config), width_(config.model.width) {
  learn(config);
}

Coreference::Coreference(const Config& config, const Vocabularies& vocabularies)
    : SentenceTask(config), width_(config.model.width) {
  restore(vocabularies);
}

Tensor Coreference::logits(const Network& network, const Batch& batch, Context& context) const {
  const Tensor x = (*network.model)(batch.ids, batch.lengths, context);
  const Index sentences = x.dim(0), time = x.dim(1);
  const Tensor query = reshape(network.logits(select_rows(x, batch.rows)), {sentences, width_, 1});
  const Tensor scores = reshape(matmul(x, query), {sentences, time});
  return scores / std::sqrt(static_cast<double>(width_)) +
         excluded(batch.lengths, batch.rows, time, x.dtype());
}

std::vector<Prediction> Coreference::predict(const Network& network, std::string_view text) const {
  const Sentence sentence = read(text);
  require<UserError>(sentence.words.size() > 1 || sentence.targets.empty(),
                     "\"{}\" has no word that \"{}\" could stand for", text, sentence.words[0]);
  return predictions(network, text);
}

}  // namespace qkv
