#pragma once

#include "datasets/corpus.h"
#include "train/config/option_list.h"
#include "train/tasks/example_task.h"

namespace qkv {

/// Word contexts of a plain text: the words that have neighbours or, for GloVe, the pairs of words
/// that occur together.
struct WordContexts {
  /// Two words that occur together `count` times.
  struct Pair {
    std::int32_t word, neighbour;
    double count;
  };

  Index size() const { return words + std::ssize(pairs); }
  Index tokens(Index) const { return 1; }
  TokenCount token_count(const Vocabulary&) const { return {}; }

  Lists<std::int32_t> lines;
  Index words = 0;          ///< of all lines; 0 for GloVe
  std::vector<Pair> pairs;  ///< empty but for GloVe
};

void for_each_ids(const WordContexts& contexts, const Task::IdsSink& sink);

/// The fraction of targets that score above all their negatives ("accuracy"); for GloVe the root of
/// the loss ("error").
class EmbeddingMetrics {
 public:
  explicit EmbeddingMetrics(Objective objective) : objective_(objective) {}

  /// scores [N, 1 + negatives], each target before its negatives
  void update(const Tensor& scores);
  void report(Evaluation& evaluation) const;

 private:
  Objective objective_;
  double right_ = 0, targets_ = 0;
};

/// What does a word occur next to? Learns one vector a word from plain text, with a static model
/// whose output layer holds the context vectors. Rare words are left out, and windows end with the
/// line. Of a line with tabs the last column is the text.
///
///   skip-gram, cbow   each word predicts its neighbours, or their mean predicts it, with negative
///                     sampling from count^0.75 of all words but the one to predict (Mikolov et al.
///                     2013, "Distributed Representations of Words and Phrases"); a window is 1 to
///                     `window` words to either side. Training draws both anew each time,
///                     evaluation by the word and its widest window alone
///   glove             f(x) (w_i . c_j + b_i + b_j - log x)^2 with f(x) = min(1, (x / 100)^0.75),
///                     where x is the co-occurrence count of i and j within the window, weighted
///                     by 1 / distance (Pennington et al. 2014); the counts being symmetric, words
///                     and contexts share b, the output layer's bias
class StaticEmbedding final : public RowTask<WordContexts, EmbeddingMetrics> {
 public:
  explicit StaticEmbedding(const Config& config);

  static std::optional<Conflict> conflict(const Config& config);

  Scores scores(const Network& network, const Sentence& sentence, Index,
                Context& context) const override {
    return no_scores(network, sentence, context);
  }
  /// Throws UserError: static vectors predict nothing.
  std::vector<Prediction> predict(const Network& network, std::string_view text) const override;

 private:
  using Ids = std::vector<std::int32_t>;
  /// (input, target) pairs of some words, with negatives.
  struct Samples {
    std::vector<Ids> inputs;  ///< [N] words, whose mean predicts
    Ids candidates;           ///< [N, 1 + negatives], each target before its negatives
  };

  void add_file(const std::filesystem::path& file, Rows& rows,
                ReadCallback& callback) const override {
    add_sentences(file, cutting(), rows, callback);
  }
  void learn_lists(const Config& config, const Rows& rows, std::span<const Index> training,
                   const Vocabularies& known) override;
  void restore_lists(const Vocabularies& lists) override;
  WordContexts encoded(const Rows& rows, std::span<const Index> chosen,
                       ReadCallback& callback) const override;
  void check_training(const Config& config) override;
  LabelledText example_of(const WordContexts& contexts, Index i) const override;
  BatchLoss batch_loss(const Network& network, const WordContexts& contexts,
                       std::span<const Index> chosen, Context& context,
                       EmbeddingMetrics* metrics) const override;
  EmbeddingMetrics metrics() const override { return EmbeddingMetrics(options_.objective); }

  std::vector<WordContexts::Pair> co_occurrences(const Lists<std::int32_t>& lines) const;
  /// The word that draw `index` of a random stream gives, with probability ~ count^0.75; never the
  /// target.
  std::int32_t negative(const Random& random, std::uint64_t index, std::int32_t target) const;
  /// Adds the samples of the word at `position` of `line`.
  void add_samples(Samples& samples, std::span<const std::int32_t> line, Index position,
                   const Random& random) const;
  /// Where the word at `position` stands in its widest window, and the words of this.
  Ids window_of(std::span<const std::int32_t> line, Index position) const;
  BatchLoss window_loss(const Network& network, const WordContexts& contexts,
                        std::span<const Index> chosen, Context& context,
                        EmbeddingMetrics* metrics) const;
  static BatchLoss glove_loss(const Network& network, const WordContexts& contexts,
                              std::span<const Index> chosen);
  /// Prepares the drawing of negatives.
  void set_cumulative();

  TaskOptions options_;
  std::vector<Index> counts_;       ///< of each word in training
  std::vector<double> cumulative_;  ///< probability ~ count^0.75 of all words up to each
};

}  // namespace qkv
