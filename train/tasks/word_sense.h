#pragma once

#include "train/tasks/sentence_task.h"

namespace qkv {

/// Which sense does a word have in its sentence? The word's contextual vector goes through the
/// output layer.
class WordSense final : public SentenceTask {
 public:
  explicit WordSense(const Config& config) : SentenceTask(config) { learn(config); }
  WordSense(const Config& config, const Vocabularies& vocabularies) : SentenceTask(config) {
    restore(vocabularies);
  }

  std::vector<Prediction> predict(const Network& network, std::string_view text) const override;

 private:
  SentenceExamples read_file(const std::filesystem::path& file) const override {
    return read_word_sense_tsv(file);
  }
  Tensor logits(const Network& network, const Batch& batch, Context& context) const override;
};

}  // namespace qkv
