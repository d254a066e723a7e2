#pragma once

#include "datasets/corpus.h"
#include "train/tasks/example_task.h"

namespace qkv {

/// What a user writes for a token that is to be predicted.
inline constexpr std::string_view mask_text = "[MASK]";

void for_each_ids(const EncodedTexts& texts, const Task::IdsSink& sink);

/// Accuracy and perplexity at the masked positions, which are what is counted.
class MaskedTokenMetrics {
 public:
  /// logits [N, V], the right tokens [N]
  void update(const Tensor& logits, const Indices& answers);
  void report(Evaluation& evaluation) const;

 private:
  Index right_ = 0, targets_ = 0;
};

/// Which tokens are masked? Each is predicted from those on both sides (Devlin et al. 2019, "BERT",
/// 3.1). Of a sentence's n tokens, task.mask_probability n are chosen, rounded and at least one; of
/// these 80 % are replaced by the mask token, 10 % by a random token, and 10 % stay. Training draws
/// anew at every step, evaluation for each sentence the same each time. Unknown tokens are not
/// chosen.
///
/// The mask token is <unk>: a word that fine-tuning or a user brings, and that the model does not
/// know, has the vector of a word that is to be guessed from its context. An imported BERT has a
/// mask token of its own, "[MASK]".
///
/// A line of a file is a sentence, of a line with tabs its last column; longer ones are divided
/// into parts of model.max_length.
class MaskedLanguageModel final : public RowTask<EncodedTexts, MaskedTokenMetrics> {
 public:
  explicit MaskedLanguageModel(const Config& config)
      : RowTask(config), mask_probability_(config.task.mask_probability) {}

  /// Its targets are the tokens written as `mask_text`.
  Sentence read(std::string_view text) const override;
  /// The answer is the token at the line's index.
  LabelledText read_line(const TsvRow& row) const override;
  /// Of the choices the ten most probable. Throws UserError for a text without `mask_text`.
  std::vector<Prediction> predict(const Network& network, std::string_view text) const override;

 private:
  /// A sentence with some tokens replaced.
  struct Masked {
    std::vector<std::int32_t> ids;
    std::vector<Index> positions;  ///< of the tokens to predict
  };

  std::int32_t mask_id() const;
  void add_file(const std::filesystem::path& file, Rows& rows,
                ReadCallback& callback) const override {
    add_sentences(file, cutting(), rows, callback);
  }
  EncodedTexts encoded(const Rows& rows, std::span<const Index> chosen,
                       ReadCallback& callback) const override;
  void check_training(const Config& config) override;
  LabelledText example_of(const EncodedTexts& texts, Index i) const override {
    return text_of_ids(texts.sentences[i]);
  }
  Masked masked(std::span<const std::int32_t> ids, const Random& random) const;
  BatchLoss batch_loss(const Network& network, const EncodedTexts& texts,
                       std::span<const Index> chosen, Context& context,
                       MaskedTokenMetrics* metrics) const override;
  MaskedTokenMetrics metrics() const override { return {}; }

  double mask_probability_;
};

}  // namespace qkv
