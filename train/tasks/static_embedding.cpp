#include <algorithm>
#include <cmath>
#include <map>

#include "datasets/batch.h"
#include "datasets/text.h"
#include "train/tasks/example_task.h"
#include "train/tasks/kinds.h"

namespace qkv {
namespace {

constexpr Index words_at_once = 256;

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

  void for_each_ids(const Task::IdsSink& sink) const {
    const std::int32_t end[] = {-1};
    for (Index i = 0; i < lines.size(); ++i) {
      sink(lines[i]);
      sink(end);
    }
  }

  Lists<std::int32_t> lines;
  Index words = 0;          ///< of all lines; 0 for GloVe
  std::vector<Pair> pairs;  ///< empty but for GloVe
};

/// The fraction of targets that score above all their negatives ("accuracy"); for GloVe the root of
/// the loss ("error").
class EmbeddingMetrics {
 public:
  explicit EmbeddingMetrics(Objective objective) : objective_(objective) {}

  /// scores [N, 1 + negatives], each target before its negatives
  void update(const Tensor& scores) {
    const auto values = scores.values();
    const Index choices = scores.dim(1);
    for (auto row = values.begin(); row != values.end(); row += choices)
      right_ += std::all_of(row + 1, row + choices, [&](double s) { return s < *row; });
    targets_ += static_cast<double>(scores.dim(0));
  }
  void report(Evaluation& evaluation) const {
    if (objective_ == Objective::glove)
      evaluation.metrics = {{"error", std::sqrt(evaluation.loss)}};
    else
      evaluation.metrics = {{"accuracy", right_ / std::max(targets_, 1.0)}};
    evaluation.score = -evaluation.loss;
  }

 private:
  Objective objective_;
  double right_ = 0, targets_ = 0;
};

/// Which words occur beside a word? Learns one vector a word from plain text, with a static model
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
  explicit StaticEmbedding(const Config& config) : RowTask(config, words_at_once) {}

  Scores scores(const Network& network, const Sentence& sentence, Index,
                Context& context) const override {
    return no_scores(network, sentence, context);
  }
  bool has_choices(const Sentence&) const override { return false; }
  std::string refusal(const Sentence&, std::string_view) const override {
    return "a model of static embeddings predicts nothing; qkv embed shows its vectors";
  }

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
  void learn_lists(const Rows& rows, std::span<const Index> training,
                   const Vocabularies& known) override {
    learn_tokens(rows.corpus.counts(training), known);
    const CorpusEncoder encoder(rows.corpus, tokenizer());
    counts_.resize(static_cast<std::size_t>(vocabulary().size()));
    for (const Index line : training)
      for (const auto id : encoder.ids(line)) ++counts_[static_cast<std::size_t>(id)];
    counts_[Vocabulary::unknown] = 0;
    Tokens texts;
    for (const Index count : counts_) texts.push_back(std::to_string(count));
    set_list("counts", std::move(texts));
  }

  void restore_lists(const Vocabularies& lists) override {
    set_list("counts", token_list(lists, "counts"));
    for (const std::string& text : list("counts")) {
      const auto count = number_in(text);
      require<FileError>(count.has_value(),
                         "the checkpoint's /vocabulary/counts has \"{}\" for a count", text);
      counts_.push_back(*count);
    }
    require<FileError>(std::ssize(counts_) == vocabulary().size(),
                       "the checkpoint's /vocabulary/counts has {} entries for {} tokens",
                       counts_.size(), vocabulary().size());
    set_cumulative();
  }

  WordContexts encoded(const Rows& rows, std::span<const Index> chosen,
                       ReadCallback&) const override {
    const CorpusEncoder encoder(rows.corpus, tokenizer());
    WordContexts contexts;
    for (const Index line : chosen) {
      Ids ids = encoder.ids(line);
      std::erase(ids, Vocabulary::unknown);
      if (ids.size() >= 2) contexts.lines.add(ids);
    }
    require<UserError>(
        options().objective == Objective::glove ||
            std::ranges::count_if(counts_, [](Index count) { return count > 0; }) != 1,
        "the training text has one word alone; negative sampling needs two different ones");
    if (options().objective == Objective::glove)
      contexts.pairs = co_occurrences(contexts.lines);
    else
      contexts.words = std::ssize(contexts.lines.flat());
    return contexts;
  }

  void check_training() override {
    require<UserError>(size(Split::train) > 0,
                       "{}: no line has two words that occur task.min_count = {} times",
                       source_of(options()), options().min_count);
    set_cumulative();
  }

  /// The line of a word; of a pair its word alone.
  LabelledText example_of(const WordContexts& contexts, Index i) const override {
    if (i >= contexts.words)
      return text_of_ids({contexts.pairs[static_cast<std::size_t>(i - contexts.words)].word});
    const auto [number, position] = contexts.lines.locate(i);
    const auto line = contexts.lines[number];
    LabelledText text = text_of_ids({line.begin(), line.end()});
    text.index = position;
    return text;
  }

  BatchLoss batch_loss(const Network& network, const WordContexts& contexts,
                       std::span<const Index> chosen, Context& context,
                       EmbeddingMetrics* metrics) const override {
    return options().objective == Objective::glove
               ? glove_loss(network, contexts, chosen)
               : window_loss(network, contexts, chosen, context, metrics);
  }

  EmbeddingMetrics metrics() const override { return EmbeddingMetrics(options().objective); }

  std::vector<WordContexts::Pair> co_occurrences(const Lists<std::int32_t>& lines) const {
    std::map<std::pair<std::int32_t, std::int32_t>, double> counts;
    for (Index number = 0; number < lines.size(); ++number) {
      const auto line = lines[number];
      for (std::size_t i = 0; i < line.size(); ++i)
        for (std::size_t d = 1; d <= static_cast<std::size_t>(options().window) && d <= i; ++d) {
          const double count = 1 / static_cast<double>(d);
          counts[{line[i], line[i - d]}] += count;
          counts[{line[i - d], line[i]}] += count;
        }
    }
    std::vector<WordContexts::Pair> pairs;
    pairs.reserve(counts.size());
    for (const auto& [words, count] : counts) pairs.push_back({words.first, words.second, count});
    return pairs;
  }

  /// The word that draw `index` of a random stream gives, with probability ~ count^0.75; never the
  /// target.
  std::int32_t negative(const Random& random, std::uint64_t index, std::int32_t target) const {
    const auto at = static_cast<std::size_t>(target);
    const double before = at > 0 ? cumulative_[at - 1] : 0, own = cumulative_[at] - before;
    /// Probability of all words up to `word` but the target.
    const auto without_target = [&](std::size_t word) {
      return word < at ? cumulative_[word] : word == at ? before : cumulative_[word] - own;
    };
    std::size_t first = 0, last = cumulative_.size() - 1;
    const double drawn = random.uniform(index) * without_target(last);
    // The first word whose probability with those before it is above `drawn`.
    while (first < last) {
      const std::size_t middle = (first + last) / 2;
      if (without_target(middle) > drawn)
        last = middle;
      else
        first = middle + 1;
    }
    return static_cast<std::int32_t>(first);
  }

  /// Adds the samples of the word at `position` of `line`.
  void add_samples(Samples& samples, std::span<const std::int32_t> line, Index position,
                   const Random& random) const {
    std::uint64_t drawn = 0;
    const Index reach = 1 + static_cast<Index>(random.bits(drawn++)) % options().window;
    const auto add = [&](Ids input, std::int32_t target) {
      samples.inputs.push_back(std::move(input));
      samples.candidates.push_back(target);
      for (Index j = 0; j < options().negatives; ++j)
        samples.candidates.push_back(negative(random, drawn++, target));
    };
    const Index first = std::max<Index>(position - reach, 0),
                last = std::min<Index>(position + reach, std::ssize(line) - 1);
    Ids neighbours;
    for (Index i = first; i <= last; ++i)
      if (i != position) neighbours.push_back(line[static_cast<std::size_t>(i)]);
    const std::int32_t word = line[static_cast<std::size_t>(position)];
    if (options().objective == Objective::cbow)
      add(neighbours, word);
    else
      for (const auto neighbour : neighbours) add({word}, neighbour);
  }

  /// Where the word at `position` stands in its widest window, and the words of this.
  Ids window_of(std::span<const std::int32_t> line, Index position) const {
    const Index first = std::max<Index>(position - options().window, 0),
                end = std::min<Index>(position + options().window + 1, std::ssize(line));
    Ids window = {static_cast<std::int32_t>(position - first)};
    window.insert(window.end(), line.begin() + first, line.begin() + end);
    return window;
  }

  BatchLoss window_loss(const Network& network, const WordContexts& contexts,
                        std::span<const Index> chosen, Context& context,
                        EmbeddingMetrics* metrics) const {
    Samples samples;
    for (const Index word : chosen) {
      const auto [line, position] = contexts.lines.locate(word);
      const Random random = context.training()
                                ? context.next_random()
                                : drawn_for(window_of(contexts.lines[line], position));
      add_samples(samples, contexts.lines[line], position, random);
    }
    const Index count = std::ssize(samples.inputs), choices = 1 + options().negatives;
    const TokenBatch input = pad(samples.inputs);
    const Tensor x =
        masked_mean(embedding(network.model->embedding_table(), input.ids), input.lengths);
    const Tensor y = embedding(network.head->weight, Indices(samples.candidates, {count, choices}));
    const Tensor scores = reshape(matmul(y, reshape(x, {count, -1, 1})), {count, choices});
    std::vector<double> truth(samples.candidates.size());
    for (std::size_t i = 0; i < truth.size(); i += static_cast<std::size_t>(choices)) truth[i] = 1;
    const Tensor targets = Tensor::from(truth, scores.shape(), scores.dtype());
    if (metrics) metrics->update(scores);
    return {binary_cross_entropy_with_logits(scores, targets) * static_cast<double>(choices),
            count};
  }

  static BatchLoss glove_loss(const Network& network, const WordContexts& contexts,
                              std::span<const Index> chosen) {
    Ids words, neighbours;
    std::vector<double> logs, weights;
    for (const Index i : chosen) {
      const WordContexts::Pair& pair = contexts.pairs[static_cast<std::size_t>(i)];
      words.push_back(pair.word);
      neighbours.push_back(pair.neighbour);
      logs.push_back(std::log(pair.count));
      weights.push_back(std::min(1.0, std::pow(pair.count / 100, 0.75)));
    }
    const Index count = std::ssize(words);
    const Indices i(words, {count}), j(neighbours, {count});
    const Tensor table = network.model->embedding_table(), output = network.head->weight;
    const Tensor bias = reshape(*network.head->bias, {-1, 1});
    const Tensor products = sum(embedding(table, i) * embedding(output, j), 1);
    const Tensor biases = reshape(embedding(bias, i) + embedding(bias, j), {count});
    const Tensor errors = products + biases - Tensor::from(logs, {count}, products.dtype());
    return {mean(Tensor::from(weights, {count}, products.dtype()) * errors * errors), count};
  }

  /// Prepares the drawing of negatives.
  void set_cumulative() {
    double total = 0;
    for (const Index count : counts_)
      cumulative_.push_back(total += std::pow(static_cast<double>(count), 0.75));
    require<UserError>(total > 0, "the checkpoint's /vocabulary/counts are all 0");
    for (double& probability : cumulative_) probability /= total;
  }

  std::vector<Index> counts_;       ///< of each word in training
  std::vector<double> cumulative_;  ///< probability ~ count^0.75 of all words up to each
};

}  // namespace

std::unique_ptr<Task> make_static_embedding(const Config& config, const Task::Vocabularies& known,
                                            ReadCallback* callback) {
  return made<StaticEmbedding>(config, known, callback);
}

std::optional<Conflict> static_embedding_conflict(const Config& config) {
  if (config.model.kind != ModelKind::static_embedding)
    return Conflict{{"model.kind", "task.kind"},
                    "task.kind \"static-embedding\" needs model.kind = \"static\""};
  if (config.task.objective == Objective::glove && !config.model.bias)
    return Conflict{{"model.bias", "task.objective"},
                    "task.objective \"glove\" needs model.bias = true"};
  return std::nullopt;
}

}  // namespace qkv
