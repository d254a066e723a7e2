#pragma once

#include "train/tasks/sentence_task.h"

namespace qkv {

/// Which class does a text belong to? Its one vector (`Model::sentence`) goes through the output
/// layer.
class Classification final : public SentenceTask {
 public:
  explicit Classification(const Config& config) : SentenceTask(config) { learn(config); }
  Classification(const Config& config, const Vocabularies& vocabularies) : SentenceTask(config) {
    restore(vocabularies);
  }

  std::vector<Prediction> predict(const Network& network, std::string_view text) const override;

 private:
  bool asks_about_a_word() const override { return false; }
  SentenceExamples read_file(const std::filesystem::path& file) const override {
    return read_classify_tsv(file);
  }
  std::string formula() const override { return "W mean(y) + b"; }
  Tensor logits(const Network& network, const Batch& batch, Context& context) const override;
};

}  // namespace qkv
