#pragma once

#include "datasets/conll.h"
#include "datasets/corpus.h"
#include "train/config/option_list.h"
#include "train/tasks/sentence_task.h"

namespace qkv {

/// Sentences and the label of each token, encoded.
struct EncodedTags {
  Index size() const { return sentences.size(); }

  IdLists sentences;
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
class Tagging final : public ExampleTask<EncodedTags, TaggingMetrics> {
 public:
  Tagging(const Config& config, const Vocabularies& known, ReadCallback& callback);
  Tagging(const Config& config, const Vocabularies& vocabularies);

  static std::optional<Conflict> conflict(const Config& config);

  Index outputs() const override { return std::ssize(labels_); }
  Vocabularies vocabularies() const override;
  Index tokens(Index example) const override;
  /// Its targets are the tokens that have labels in training: the first of each word between white
  /// space. Throws UserError when there is none.
  Sentence read(std::string_view text) const override;
  /// `labels<TAB>sentence` with a label a word, or a sentence.
  LabelledText read_line(const TsvRow& row) const override;
  void for_each_line(const std::filesystem::path& file, ReadCallback& callback,
                     const UseRow& use) const override;
  std::string label_summary() const override;
  Scores scores(const Network& network, const Sentence& sentence, Index index,
                Context& context) const override;

 private:
  using Examples = EncodedTags;
  struct Rows;  ///< that were read before there is a vocabulary

  void add_file(const std::filesystem::path& file, Rows& rows, ReadCallback& callback) const;
  /// Where each word of a sentence has its label; -1 where nothing of it is left, or it is cut off.
  std::vector<Index> labelled_tokens(const CutSentence& cut) const;
  Examples encoded(const Rows& rows, std::span<const Index> chosen, ReadCallback& callback) const;
  Examples read_examples(const std::filesystem::path& file, ReadCallback& callback) const override;
  LabelledText example_of(const Examples& examples, Index i) const override;
  TokenCount token_count(const Examples& examples) const override {
    return token_count_of(examples.sentences);
  }
  BatchLoss batch_loss(const Network& network, const Examples& examples,
                       std::span<const Index> chosen, Context& context,
                       TaggingMetrics* metrics) const override;
  TaggingMetrics metrics() const override { return TaggingMetrics(labels_); }

  UnknownLabels unknown_labels_;
  std::vector<std::string> labels_;  ///< of the training split, in alphabetical order
};

}  // namespace qkv
