#include <algorithm>

#include "datasets/batch.h"
#include "train/config/task_kinds.h"
#include "train/tasks/chrf.h"
#include "train/tasks/data_report.h"
#include "train/tasks/example_task.h"
#include "train/tasks/kinds.h"

namespace qkv {
namespace {

const std::string begin_token = "<bos>", end_token = "<eos>";

/// The most probable word of each sequence and its probability, from logits [B, 1, V].
std::vector<std::pair<std::int32_t, double>> most_probable(const Tensor& logits) {
  const auto width = static_cast<std::size_t>(logits.dim(-1));
  const auto values = softmax(logits).values();
  std::vector<std::pair<std::int32_t, double>> result;
  for (std::size_t i = 0; i < values.size(); i += width) {
    const auto row = std::span(values).subspan(i, width);
    const auto best = std::ranges::max_element(row);
    result.emplace_back(static_cast<std::int32_t>(best - row.begin()), *best);
  }
  return result;
}

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

  void for_each_ids(const Task::IdsSink& sink) const {
    const std::int32_t end[] = {-1};
    for (Index i = 0; i < size(); ++i)
      for (const auto* texts : {&sentences, &targets}) {
        sink((*texts)[i]);
        sink(end);
      }
  }

  IdLists targets;       ///< of the sentences
  TextLists references;  ///< target words as texts
};

/// The fraction of outputs that equal their references ("exact_match") and ChrF ("chrf").
class TranslationMetrics {
 public:
  void update(const std::string& output, const std::string& reference) {
    chrf_.add(output, reference);
    right_ += output == reference;
  }
  void report(Evaluation& evaluation) const {
    evaluation.score = right_ / std::max(static_cast<double>(evaluation.count), 1.0);
    evaluation.metrics = {{"exact_match", evaluation.score}, {"chrf", chrf_.value()}};
  }

 private:
  ChrF chrf_;
  double right_ = 0;
};

/// How is a text put in another language? An encoder reads the source, a decoder predicts each
/// word of the target from the words before it; both share one vocabulary. Evaluation and
/// prediction decode greedily.
class Translation final : public RowTask<EncodedPairs, TranslationMetrics> {
 public:
  explicit Translation(const Config& config) : RowTask(config) {}

  /// `source<TAB>target` or a source.
  LabelledText read_line(const TsvRow& row) const override {
    row.require_labelled_text();
    return {.text = row.fields.front(), .sentence = read(row.fields.front())};
  }
  Scores scores(const Network& network, const Sentence& sentence, Index index,
                Context& context) const override {
    if (!sentence.written) return no_scores(network, sentence, context);
    const Ids sources[] = {sentence.ids}, inputs[] = {sentence.written->input_ids};
    const TokenBatch source = pad(sources);
    const Tensor encoded = (*network.model)(source.ids, source.lengths, context);
    const Tensor x = network.model->decode(pad(inputs).ids, encoded, source.lengths, context);
    return {reshape(network.logits(slice(x, 1, index, index + 1)), {-1}), vocabulary().tokens(),
            "W y_i + b"};
  }

  std::optional<WrittenText> write(const Network& network, const Sentence& source,
                                   std::string_view target, Context& context) const override {
    const Ids sources[] = {source.ids};
    Ids ids = target.empty() ? decoded(network, sources, context)[0].ids : read(target).ids;
    ids.resize(std::min(ids.size(), static_cast<std::size_t>(max_length() - 1)));  // 1: the end
    return written(ids);
  }

  std::vector<std::vector<Prediction>> predictions(const Network& network,
                                                   std::span<const ReadText> texts,
                                                   Context& context) const override {
    std::vector<Ids> sources;
    for (const ReadText& text : texts) sources.push_back(text.sentence.ids);
    const auto outputs = decoded(network, sources, context);
    std::vector<std::vector<Prediction>> predictions;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      Prediction prediction{texts[i].text, std::nullopt, text_of(outputs[i].ids),
                            outputs[i].probability};
      prediction.is_output = true;
      predictions.push_back({std::move(prediction)});
    }
    return predictions;
  }

 private:
  using Ids = std::vector<std::int32_t>;
  using Examples = EncodedPairs;
  /// A decoded translation.
  struct Output {
    Ids ids;
    double probability = 1;  ///< product of its words'
  };

  std::string_view form() const override { return translate_columns; }
  LabelledText example_of(const Examples& examples, Index i) const override {
    LabelledText text = text_of_ids(examples.sentences[i]);
    text.sentence.written = written(examples.targets[i]);
    return text;
  }
  BatchLoss batch_loss(const Network& network, const Examples& examples,
                       std::span<const Index> chosen, Context& context,
                       TranslationMetrics* metrics) const override {
    std::vector<Ids> sources, inputs, outputs;
    Index targets = 0;
    for (const Index i : chosen) {
      sources.push_back(examples.sentences[i]);
      outputs.push_back(examples.targets[i]);
      inputs.push_back(outputs.back());
      inputs.back().insert(inputs.back().begin(), vocabulary().id(begin_token));
      outputs.back().push_back(vocabulary().id(end_token));
      targets += std::ssize(outputs.back());
    }
    if (metrics) {
      const auto translations = decoded(network, sources, context);
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        const auto reference = examples.references[chosen[i]];
        metrics->update(text_of(translations[i].ids), {reference.begin(), reference.end()});
      }
    }
    const TokenBatch source = pad(sources), input = pad(inputs);
    const Tensor encoded = (*network.model)(source.ids, source.lengths, context);
    const Tensor x = network.model->decode(input.ids, encoded, source.lengths, context);
    return {cross_entropy(network.logits(x), pad(outputs, -1).ids), targets};
  }

  TranslationMetrics metrics() const override { return {}; }
  /// Source and target of row i are texts 2 i and 2 i + 1 of the corpus.
  void add_file(const std::filesystem::path& file, Rows& rows,
                ReadCallback& callback) const override {
    for_each_row(file, Columns(form(), options().columns), callback, [&](const TsvRow& row) {
      const SentencePair pair = parse_translation(row, cutting());
      rows.add(row.place, pair.source);
      rows.corpus.add(pair.target);
    });
  }

  void learn_lists(const Rows& rows, std::span<const Index> training,
                   const Vocabularies& known) override {
    std::vector<Index> texts;
    for (const Index row : training) texts.insert(texts.end(), {2 * row, 2 * row + 1});
    Vocabulary::Counts counts = rows.corpus.counts(texts);
    // Often enough to be in the vocabulary, however rare its words may be.
    if (cutting().kind != TokenizerKind::bpe)
      for (const std::string& token : {begin_token, end_token})
        counts[token] += options().min_count * std::ssize(training);
    learn_tokens(counts, known);
    if (cutting().kind != TokenizerKind::bpe) return;
    std::vector<std::string> tokens = vocabulary().tokens();
    for (const std::string& token : {begin_token, end_token})
      if (vocabulary().id(token) == Vocabulary::unknown) tokens.push_back(token);
    set_tokenizer({cutting(), std::move(tokens)});
  }

  void restore_lists(const Vocabularies&) override {
    for (const std::string& token : {begin_token, end_token})
      require<FileError>(vocabulary().id(token) != Vocabulary::unknown,
                         "the checkpoint's /vocabulary/tokens has no {}", token);
  }
  Examples encoded(const Rows& rows, std::span<const Index> chosen,
                   ReadCallback& callback) const override {
    const CorpusEncoder encoder(rows.corpus, tokenizer());
    const auto longest = static_cast<std::size_t>(max_length());
    DataReport report(rows, chosen, max_length());
    Examples examples;
    for (const Index row : chosen) {
      Ids source = encoder.ids(2 * row), target = encoder.ids(2 * row + 1);
      const Index longer = std::max(std::ssize(source), std::ssize(target) + 1);  // 1: the end
      if (report.is_cut(row, longer, options().truncate)) {
        source.resize(std::min(source.size(), longest));
        target.resize(std::min(target.size(), longest - 1));
      }
      examples.sentences.add(source);
      examples.targets.add(target);
      examples.references.add(text_of(rows.corpus.pieces_of(2 * row + 1)));
    }
    report.tell(callback);
    return examples;
  }

  /// Greedy decoding.
  std::vector<Output> decoded(const Network& network, std::span<const Ids> sources,
                              const Context& context) const {
    const NoGrad no_grad;
    Context encoding = context;
    const TokenBatch source = pad(sources);
    const Tensor encoded = (*network.model)(source.ids, source.lengths, encoding);
    KeyValueCache cache;
    Context decoding = context.with_cache(cache);
    std::vector<Output> outputs(sources.size());
    std::vector<bool> done(sources.size());
    Ids last(sources.size(), vocabulary().id(begin_token));
    for (Index t = 0; t < max_length() && std::ranges::find(done, false) != done.end(); ++t) {
      const Indices ids(last, {std::ssize(last), 1});
      const Tensor x = network.model->decode(ids, encoded, source.lengths, decoding);
      const auto next = most_probable(network.logits(x));
      for (std::size_t i = 0; i < next.size(); ++i) {
        last[i] = next[i].first;
        if (done[i]) continue;
        outputs[i].probability *= next[i].second;
        done[i] = last[i] == vocabulary().id(end_token);
        if (!done[i]) outputs[i].ids.push_back(last[i]);
      }
    }
    return outputs;
  }

  /// The tokens that the decoder reads and writes for these.
  WrittenText written(const Ids& ids) const {
    WrittenText text{{}, {}, ids, ids};
    text.input_ids.insert(text.input_ids.begin(), vocabulary().id(begin_token));
    text.output_ids.push_back(vocabulary().id(end_token));
    text.inputs = vocabulary().tokens(text.input_ids);
    text.outputs = vocabulary().tokens(text.output_ids);
    return text;
  }

  /// Tokens as one text, which begins with no space.
  std::string text_of(std::span<const std::string> tokens) const {
    std::string text = tokenizer().joined(tokens);
    if (text.starts_with(' ')) text.erase(0, 1);
    return text;
  }
  std::string text_of(const Ids& ids) const { return text_of(vocabulary().tokens(ids)); }
};

}  // namespace

std::unique_ptr<Task> make_translation(const Config& config, const Task::Vocabularies& known,
                                       ReadCallback* callback) {
  return made<Translation>(config, known, callback);
}

std::optional<Conflict> translation_conflict(const Config& config) {
  if (cutting_of(config).kind != TokenizerKind::character) return std::nullopt;
  return Conflict{{"task.tokenizer", "task.kind"},
                  "task.kind \"translate\" has tokens that begin and end a text, which are no "
                  "characters: task.tokenizer must be another than \"char\""};
}

}  // namespace qkv
