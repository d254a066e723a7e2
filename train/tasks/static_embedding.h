#pragma once

#include "train/tasks/task.h"

namespace qkv {

/// What does a word stand next to? Learns one vector a word from plain text, with a static model
/// whose output layer holds the words' vectors as neighbours. Rare words are left out, and windows
/// end with the line. Of a line with tabs the text behind the last counts.
///
///   skip-gram, cbow   each word foretells its neighbours, or their mean foretells it, among
///                     `negatives` words drawn by count^0.75 (Mikolov et al. 2013, "Distributed
///                     Representations of Words and Phrases"); a window is 1 to `window` words to
///                     either side. Training draws both anew each time, evaluation for each word
///                     the same each time
///   glove             f(x) (w_i . c_j + b_i + b_j - log x)^2 with f(x) = min(1, (x / 100)^0.75), x
///                     being how often i and j meet within the window, each time weighted by 1 /
///                     distance (Pennington et al. 2014); the counts being symmetric, words and
///                     neighbours share b, the output layer's bias
class StaticEmbedding final : public Task {
 public:
  explicit StaticEmbedding(const Config& config);
  StaticEmbedding(const Config& config, const Vocabularies& vocabularies);

  Index outputs() const override { return vocabulary_->size(); }
  const Vocabulary& vocabulary() const override { return *vocabulary_; }
  Vocabularies vocabularies() const override;
  /// Words that have neighbours; for GloVe pairs of words.
  Index size(Split split) const override { return size_of(text(split)); }
  Index tokens(Index) const override { return 1; }
  BatchLoss loss(const Network& network, std::span<const Index> examples,
                 Context& context) const override;
  /// The share of words told from their negatives ("accuracy"); for GloVe the root of the loss
  /// ("error").
  Evaluation evaluate(const Network& network, Split split) const override;
  Evaluation evaluate(const Network& network, const std::filesystem::path& file) const override;
  Sentence read(std::string_view text) const override;
  /// Throws UserError: vectors say nothing of a text.
  std::vector<Prediction> predict(const Network& network, std::string_view text) const override;

 private:
  using Ids = std::vector<std::int32_t>;
  using Words = std::vector<std::vector<std::string>>;
  /// Two words that meet `count` times.
  struct Pair {
    std::int32_t word, neighbour;
    double count;
  };
  struct Text {
    std::vector<Ids> lines;
    std::vector<std::pair<Index, Index>> places;  ///< line and word
    std::vector<Pair> pairs;                      ///< for GloVe
  };
  /// A batch's loss and how many of its targets scored higher than all their negatives.
  struct Result {
    BatchLoss loss;
    double right = 0;
  };

  const Text& text(Split split) const { return splits_[static_cast<std::size_t>(split)]; }
  Index size_of(const Text& text) const;
  Text encoded(const Words& lines) const;
  std::vector<Pair> pairs_of(const std::vector<Ids>& lines) const;
  /// The word that number `index` of a random stream draws by count^0.75.
  std::int32_t negative(const Random& random, std::uint64_t index) const;
  Result window_loss(const Network& network, const Text& text, std::span<const Index> places,
                     Context& context) const;
  Result glove_loss(const Network& network, const Text& text, std::span<const Index> pairs) const;
  Result loss(const Network& network, const Text& text, std::span<const Index> examples,
              Context& context) const;
  Evaluation evaluate(const Network& network, const Text& text) const;
  /// Prepares the drawing of negatives.
  void count_up();

  TaskOptions options_;
  Index max_length_;
  std::optional<Vocabulary> vocabulary_;
  std::vector<Index> counts_;       ///< of each word in training
  std::vector<double> cumulative_;  ///< shares of count^0.75 up to each word
  std::array<Text, 3> splits_;
};

}  // namespace qkv
