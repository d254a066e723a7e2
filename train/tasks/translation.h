#pragma once

#include "datasets/sentences.h"
#include "train/tasks/chrf.h"
#include "train/tasks/example_task.h"

namespace qkv {

/// A source sentence and its translation, encoded.
struct EncodedPair {
  std::vector<std::int32_t> source, target;
  std::string reference;  ///< target words as text
};

void for_each_ids(const std::vector<EncodedPair>& examples, const Task::IdsSink& sink);

/// The fraction of outputs that equal their references ("exact_match") and ChrF ("chrf").
class TranslationMetrics {
 public:
  void update(const std::string& output, const std::string& reference);
  void report(Evaluation& evaluation) const;

 private:
  ChrF chrf_;
  double right_ = 0;
};

/// What does a text say in another language? An encoder reads the source, a decoder predicts each
/// word of the target from the words before it; both share one vocabulary. Evaluation and
/// prediction decode greedily.
class Translation final : public ExampleTask<std::vector<EncodedPair>, TranslationMetrics> {
 public:
  explicit Translation(const Config& config);
  Translation(const Config& config, const Vocabularies& vocabularies);

  Index tokens(Index example) const override;
  /// `source<TAB>target` or a source.
  LabelledText read_line(const TsvRow& row) const override;
  std::vector<Prediction> predict(const Network& network, std::string_view text) const override;

 private:
  using Ids = std::vector<std::int32_t>;
  using Examples = std::vector<EncodedPair>;
  /// A decoded translation.
  struct Output {
    Ids ids;
    double probability = 1;  ///< product of its words'
  };

  Examples read_examples(const std::filesystem::path& file) const override;
  BatchLoss batch_loss(const Network& network, const Examples& examples,
                       std::span<const Index> chosen, Context& context,
                       TranslationMetrics* metrics) const override;
  TranslationMetrics metrics() const override { return {}; }
  Examples encoded(const std::vector<SentencePair>& pairs) const;
  /// Greedy decoding.
  std::vector<Output> decoded(const Network& network, std::span<const Ids> sources) const;
  std::string text_of(const Ids& ids) const;
};

}  // namespace qkv
