#pragma once

#include "datasets/corpus.h"
#include "datasets/sentences.h"
#include "train/config/option_list.h"
#include "train/tasks/chrf.h"
#include "train/tasks/example_task.h"

namespace qkv {

/// Source sentences and their translations, encoded.
struct EncodedPairs : EncodedTexts {
  Index tokens(Index i) const {
    return sentences.length(i) + 1 + targets.length(i);  // 1: <bos>
  }
  TokenCount token_count(const Vocabulary& vocabulary) const {
    const TokenCount from = count_tokens(sentences, vocabulary),
                     to = count_tokens(targets, vocabulary);
    return {from.all + to.all, from.unknown + to.unknown};
  }

  IdLists targets;       ///< of the sentences
  TextLists references;  ///< target words as texts
};

void for_each_ids(const EncodedPairs& examples, const Task::IdsSink& sink);

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
class Translation final : public RowTask<EncodedPairs, TranslationMetrics> {
 public:
  explicit Translation(const Config& config) : RowTask(config) {}

  static std::optional<Conflict> conflict(const Config& config);

  /// `source<TAB>target` or a source.
  LabelledText read_line(const TsvRow& row) const override;
  Scores scores(const Network& network, const Sentence& sentence, Index index,
                Context& context) const override;
  std::optional<WrittenText> write(const Network& network, const Sentence& source,
                                   std::string_view target) const override;
  std::vector<Prediction> predict(const Network& network, std::string_view text) const override;

 private:
  using Ids = std::vector<std::int32_t>;
  using Examples = EncodedPairs;
  /// A decoded translation.
  struct Output {
    Ids ids;
    double probability = 1;  ///< product of its words'
  };

  std::string_view form() const override { return translate_columns; }
  LabelledText example_of(const Examples& examples, Index i) const override;
  BatchLoss batch_loss(const Network& network, const Examples& examples,
                       std::span<const Index> chosen, Context& context,
                       TranslationMetrics* metrics) const override;
  TranslationMetrics metrics() const override { return {}; }
  void add_file(const std::filesystem::path& file, Rows& rows,
                ReadCallback& callback) const override;
  void learn_lists(const Config& config, const Rows& rows, std::span<const Index> training,
                   const Vocabularies& known) override;
  void restore_lists(const Vocabularies& lists) override;
  Examples encoded(const Rows& rows, std::span<const Index> chosen,
                   ReadCallback& callback) const override;
  /// Greedy decoding.
  std::vector<Output> decoded(const Network& network, std::span<const Ids> sources,
                              const Context& context) const;
  /// What the decoder reads and writes for these tokens.
  WrittenText written(const Ids& ids) const;
  /// Tokens as one text, which begins with no space.
  std::string text_of(std::span<const std::string> tokens) const;
  std::string text_of(const Ids& ids) const;
};

}  // namespace qkv
