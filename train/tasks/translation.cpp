#include "train/tasks/translation.h"

#include <algorithm>

#include "datasets/batch.h"
#include "train/config/task_kinds.h"
#include "train/tasks/data_report.h"
#include "train/tasks/splits.h"

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

}  // namespace

void for_each_ids(const EncodedPairs& examples, const Task::IdsSink& sink) {
  const std::int32_t end[] = {-1};
  for (Index i = 0; i < examples.size(); ++i)
    for (const auto* texts : {&examples.sentences, &examples.targets}) {
      sink((*texts)[i]);
      sink(end);
    }
}

void TranslationMetrics::update(const std::string& output, const std::string& reference) {
  chrf_.add(output, reference);
  right_ += output == reference;
}

void TranslationMetrics::report(Evaluation& evaluation) const {
  evaluation.score = right_ / std::max(static_cast<double>(evaluation.count), 1.0);
  evaluation.metrics = {{"exact_match", evaluation.score}, {"chrf", chrf_.value()}};
}

void Translation::restore_lists(const Vocabularies&) {
  for (const std::string& token : {begin_token, end_token})
    require<FileError>(vocabulary().id(token) != Vocabulary::unknown,
                       "the checkpoint's /vocabulary/tokens has no {}", token);
}

std::optional<Conflict> Translation::conflict(const Config& config) {
  if (cutting_of(config).kind != TokenizerKind::character) return std::nullopt;
  return Conflict{{"task.tokenizer", "task.kind"},
                  "task.kind \"translate\" has tokens that begin and end a text, which are no "
                  "characters: task.tokenizer must be another than \"char\""};
}

void Translation::learn_lists(const Config& config, const Rows& rows,
                              std::span<const Index> training, const Vocabularies& known) {
  std::vector<Index> texts;
  for (const Index row : training) texts.insert(texts.end(), {2 * row, 2 * row + 1});
  Vocabulary::Counts counts = rows.corpus.counts(texts);
  // Often enough to be in the vocabulary, however rare its words may be.
  if (cutting().kind != TokenizerKind::bpe)
    for (const std::string& token : {begin_token, end_token})
      counts[token] += config.task.min_count * std::ssize(training);
  learn_tokens(counts, known);
  if (cutting().kind != TokenizerKind::bpe) return;
  std::vector<std::string> tokens = vocabulary().tokens();
  for (const std::string& token : {begin_token, end_token})
    if (vocabulary().id(token) == Vocabulary::unknown) tokens.push_back(token);
  set_tokenizer({cutting(), std::move(tokens)});
}

/// Source and target of row i are texts 2 i and 2 i + 1 of the corpus.
void Translation::add_file(const std::filesystem::path& file, Rows& rows,
                           ReadCallback& callback) const {
  for_each_row(file, Columns(form(), columns()), callback, [&](const TsvRow& row) {
    const SentencePair pair = parse_translation(row, cutting());
    rows.add(row.place, pair.source);
    rows.corpus.add(pair.target);
  });
}

Translation::Examples Translation::encoded(const Rows& rows, std::span<const Index> chosen,
                                           ReadCallback& callback) const {
  const CorpusEncoder encoder(rows.corpus, tokenizer());
  const auto longest = static_cast<std::size_t>(max_length());
  DataReport report(rows, chosen, max_length());
  Examples examples;
  for (const Index row : chosen) {
    Ids source = encoder.ids(2 * row), target = encoder.ids(2 * row + 1);
    const Index longer = std::max(std::ssize(source), std::ssize(target) + 1);  // 1: the end
    if (report.is_cut(row, longer, truncates())) {
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

LabelledText Translation::example_of(const Examples& examples, Index i) const {
  LabelledText text = text_of_ids(examples.sentences[i]);
  text.sentence.written = written(examples.targets[i]);
  return text;
}

BatchLoss Translation::batch_loss(const Network& network, const Examples& examples,
                                  std::span<const Index> chosen, Context& context,
                                  TranslationMetrics* metrics) const {
  std::vector<Ids> sources, inputs, outputs;
  Index targets = 0;
  for (const Index i : chosen) {
    const auto from = examples.sentences[i], to = examples.targets[i];
    sources.emplace_back(from.begin(), from.end());
    inputs.emplace_back(to.begin(), to.end());
    inputs.back().insert(inputs.back().begin(), vocabulary().id(begin_token));
    outputs.emplace_back(to.begin(), to.end());
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

std::vector<Translation::Output> Translation::decoded(const Network& network,
                                                      std::span<const Ids> sources,
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

std::string Translation::text_of(std::span<const std::string> tokens) const {
  std::string text = tokenizer().joined(tokens);
  if (text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::string Translation::text_of(const Ids& ids) const {
  return text_of(vocabulary().tokens(ids));
}

LabelledText Translation::read_line(const TsvRow& row) const {
  row.require_labelled_text();
  return {.text = row.fields.front(), .sentence = read(row.fields.front())};
}

Scores Translation::scores(const Network& network, const Sentence& sentence, Index index,
                           Context& context) const {
  if (!sentence.written) return no_scores(network, sentence, context);
  const Ids sources[] = {sentence.ids}, inputs[] = {sentence.written->input_ids};
  const TokenBatch source = pad(sources);
  const Tensor encoded = (*network.model)(source.ids, source.lengths, context);
  const Tensor x = network.model->decode(pad(inputs).ids, encoded, source.lengths, context);
  return {reshape(network.logits(slice(x, 1, index, index + 1)), {-1}), vocabulary().tokens(),
          "W y_i + b"};
}

std::optional<WrittenText> Translation::write(const Network& network, const Sentence& source,
                                              std::string_view target) const {
  const Ids sources[] = {source.ids};
  Ids ids = target.empty() ? decoded(network, sources, Context())[0].ids : read(target).ids;
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(max_length() - 1)));  // 1: the end
  return written(ids);
}

WrittenText Translation::written(const Ids& ids) const {
  WrittenText text{{}, {}, ids, ids};
  text.input_ids.insert(text.input_ids.begin(), vocabulary().id(begin_token));
  text.output_ids.push_back(vocabulary().id(end_token));
  text.inputs = vocabulary().tokens(text.input_ids);
  text.outputs = vocabulary().tokens(text.output_ids);
  return text;
}

std::vector<Prediction> Translation::predict(const Network& network, std::string_view text) const {
  const Ids source[] = {read(text).ids};
  const Output output = decoded(network, source, Context())[0];
  Prediction prediction{std::string(text), std::nullopt, text_of(output.ids), output.probability};
  prediction.is_output = true;
  return {prediction};
}

}  // namespace qkv
