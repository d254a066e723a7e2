#pragma once

#include "datasets/conll.h"
#include "datasets/corpus.h"
#include "train/config/option_list.h"
#include "train/tasks/choice_metrics.h"
#include "train/tasks/example_task.h"

namespace qkv {

/// Sentences and the label of each token, encoded.
struct EncodedTags : EncodedTexts {
  Lists<std::int32_t> tags;  ///< -1 at tokens without a label: all of a word but its first
};

void for_each_ids(const EncodedTags& examples, const Task::IdsSink& sink);

/// Accuracy and macro F1 over labelled tokens and, where labels are parts of spans
/// (`is_span_label`), the F1 of spans: exactly those tokens and that type (Tjong Kim Sang & De
/// Meulder 2003, "Introduction to the CoNLL-2003 Shared Task").
class TaggingMetrics {
 public:
  explicit TaggingMetrics(const std::vector<std::string>& labels);

  /// scores [B, T, C], tags [B, T]
  void update(const Tensor& scores, const Indices& tags);
  void keep_probabilities() { tokens_.keep_probabilities(); }
  void report(Evaluation& evaluation) const;

 private:
  const std::vector<std::string>* labels_;
  ChoiceMetrics tokens_;
  Index labelled_ = 0;
  Index spans_ = 0, predicted_ = 0, common_ = 0;
};

/// Which label has each token? Each contextual vector goes through the output layer. Reads files in
/// CoNLL columns (`for_each_conll_sentence`).
class Tagging final : public RowTask<EncodedTags, TaggingMetrics> {
 public:
  explicit Tagging(const Config& config)
      : RowTask(config), unknown_labels_(config.task.unknown_labels) {}

  static std::optional<Conflict> conflict(const Config& config);

  /// Its targets are the tokens that have labels in training: the first of each word between white
  /// space. Throws UserError when there is none.
  Sentence read(std::string_view text) const override;
  /// `labels<TAB>sentence` with a label a word, or a sentence.
  LabelledText read_line(const TsvRow& row) const override;
  void for_each_line(const std::filesystem::path& file, ReadCallback& callback,
                     const UseRow& use) const override;
  std::string label_summary() const override;

 private:
  using Examples = EncodedTags;
  void add_file(const std::filesystem::path& file, Rows& rows,
                ReadCallback& callback) const override;
  void learn_lists(const Config& config, const Rows& rows, std::span<const Index> training,
                   const Vocabularies& known) override;
  void restore_lists(const Vocabularies& lists) override {
    set_list("labels", distinct_list(lists, "labels"));
  }
  /// Where each word of a sentence has its label; -1 where nothing of it is left, or it is cut off.
  std::vector<Index> labelled_tokens(const CutSentence& cut) const;
  Examples encoded(const Rows& rows, std::span<const Index> chosen,
                   ReadCallback& callback) const override;
  LabelledText example_of(const Examples& examples, Index i) const override;
  BatchLoss batch_loss(const Network& network, const Examples& examples,
                       std::span<const Index> chosen, Context& context,
                       TaggingMetrics* metrics) const override;
  TaggingMetrics metrics() const override { return TaggingMetrics(labels()); }

  UnknownLabels unknown_labels_;
};

}  // namespace qkv
