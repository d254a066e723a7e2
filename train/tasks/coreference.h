#pragma once

#include "train/tasks/sentence_task.h"

namespace qkv {

/// Which word does a pronoun stand for? A word's score is the product of its contextual vector with
/// the pronoun's after the output layer, x_t (W x_pronoun + b) / sqrt(D): attention of the pronoun
/// to the other words (Vinyals et al. 2015, "Pointer Networks", with a product for the sum).
class Coreference final : public SentenceTask {
 public:
  explicit Coreference(const Config& config);
  Coreference(const Config& config, const Vocabularies& vocabularies);

  /// The output layer leads from vectors to vectors.
  Index outputs() const override { return width_; }
  /// For each pronoun the word that it stands for.
  std::vector<Prediction> predict(const Network& network, std::string_view text) const override;

 private:
  bool answers_are_labels() const override { return false; }
  SentenceExamples read_file(const std::filesystem::path& file) const override {
    return read_coreference_tsv(file);
  }
  std::string formula() const override { return "y_j . (W y_i + b) / sqrt(D)"; }
  Tensor logits(const Network& network, const Batch& batch, Context& context) const override;

  Index width_;
};

}  // namespace qkv
