#include "train/tasks/tagging.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "datasets/batch.h"
#include "datasets/text.h"
#include "train/config/task_kinds.h"
#include "train/tasks/data_report.h"
#include "train/tasks/labels.h"

namespace qkv {
namespace {

/// Whether labels mark spans: one is B- or I-, or all but "O" are parts of spans.
bool mark_spans(const std::vector<std::string>& labels) {
  const auto is_bio = [](const std::string& label) {
    return label.starts_with("B-") || label.starts_with("I-");
  };
  const auto is_part = [](const std::string& label) {
    return label == "O" || is_span_label(label);
  };
  return std::ranges::any_of(labels, is_bio) || std::ranges::all_of(labels, is_part);
}

/// What a sentence of a file is to `Tagging::read_line`; a word with white space inside has its
/// label for each of its parts.
TsvRow row_of_words(const LabelledWords& sentence, const Cutting& cutting) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < sentence.words.size(); ++i)
    labels.insert(labels.end(), cut_phrase(sentence.words[i], cutting).positions.size(),
                  sentence.labels[i]);
  return {sentence.place,
          {fmt::format("{}", fmt::join(labels, " ")),
           fmt::format("{}", fmt::join(sentence.words, " "))}};
}

}  // namespace

void for_each_ids(const EncodedTags& examples, const Task::IdsSink& sink) {
  const std::int32_t end[] = {-2};
  for (Index i = 0; i < examples.size(); ++i) {
    sink(examples.sentences[i]);
    sink(examples.tags[i]);
    sink(end);
  }
}

TaggingMetrics::TaggingMetrics(const std::vector<std::string>& labels)
    : labels_(&labels), tokens_(labels) {}

void TaggingMetrics::update(const Tensor& scores, const Indices& tags) {
  const Index sentences = scores.dim(0), time = scores.dim(1), labels = scores.dim(2);
  const auto values = scores.data<float>();
  for (Index b = 0; b < sentences; ++b) {
    std::vector<std::int32_t> answers;
    std::vector<double> chosen;
    std::vector<std::string> right, given;
    for (Index t = 0; t < time; ++t) {
      const auto at = static_cast<std::size_t>(b * time + t);
      const std::int32_t tag = tags.data()[at];
      if (tag < 0) continue;
      const auto width = static_cast<std::size_t>(labels);
      const auto row = values.subspan(at * width, width);
      answers.push_back(tag);
      chosen.insert(chosen.end(), row.begin(), row.end());
      right.push_back((*labels_)[static_cast<std::size_t>(tag)]);
      given.push_back(
          (*labels_)[static_cast<std::size_t>(std::ranges::max_element(row) - row.begin())]);
    }
    const auto expected = spans_of(right), found = spans_of(given);
    spans_ += std::ssize(expected);
    predicted_ += std::ssize(found);
    common_ += std::ranges::count_if(found, [&](const Span& span) {
      const auto same = std::ranges::lower_bound(expected, span.begin, {}, &Span::begin);
      return same != expected.end() && *same == span;
    });
    const Index count = std::ssize(answers);
    labelled_ += count;
    if (count > 0)
      tokens_.update(Tensor::from(chosen, {count, labels}, DType::float32),
                     Indices(answers, {count}));
  }
}

void TaggingMetrics::report(Evaluation& evaluation) const {
  evaluation.count = labelled_;
  tokens_.report(evaluation);
  if (!mark_spans(*labels_)) return;
  const Index all = spans_ + predicted_;
  evaluation.score = all ? 2 * static_cast<double>(common_) / static_cast<double>(all) : 0;
  evaluation.metrics.emplace_back("span_f1", evaluation.score);
}

void Tagging::learn_lists(const Config& config, const Rows& rows, std::span<const Index> training,
                          const Vocabularies& known) {
  learn_tokens(rows.corpus.counts(training), known);
  std::set<std::string> labels;
  for (const Index row : training)
    for (const auto& [label, piece] : rows.marks[row])
      if (piece >= 0) labels.insert(rows.labels.text(label));
  set_list("labels", label_list(labels, source_of(config)));
}

std::optional<Conflict> Tagging::conflict(const Config& config) {
  if (cutting_of(config).kind != TokenizerKind::character) return std::nullopt;
  return Conflict{
      {"task.tokenizer", "task.kind"},
      "task.kind \"tagging\" labels words: task.tokenizer must be another than \"char\""};
}

std::string Tagging::label_summary() const {
  std::vector<Index> counts(labels().size());
  for (const std::int32_t tag : examples(Split::train).tags.flat())
    if (tag >= 0) ++counts[static_cast<std::size_t>(tag)];
  return summary_of(labels(), counts);
}

void Tagging::for_each_line(const std::filesystem::path& file, ReadCallback& callback,
                            const UseRow& use) const {
  for_each_conll_sentence(file, callback, [&](const LabelledWords& sentence) {
    TsvRow row = row_of_words(sentence, cutting());
    use(row);
  });
}

void Tagging::add_file(const std::filesystem::path& file, Rows& rows,
                       ReadCallback& callback) const {
  for_each_conll_sentence(file, callback, [&](const LabelledWords& sentence) {
    const CutSentence cut = cut_sentence(sentence.words, cutting());
    std::vector<Rows::Mark> words;
    for (std::size_t i = 0; i < sentence.labels.size(); ++i)
      words.push_back(
          {rows.labels.number(sentence.labels[i]), static_cast<std::int32_t>(cut.positions[i])});
    rows.add(sentence.place, cut.pieces, words);
  });
}

Tagging::Examples Tagging::encoded(const Rows& rows, std::span<const Index> chosen,
                                   ReadCallback& callback) const {
  const CorpusEncoder encoder(rows.corpus, tokenizer());
  const std::vector<Index> known = label_ids(labels(), rows.labels);
  DataReport report(rows, chosen, max_length());
  Examples examples;
  for (const Index row : chosen) {
    auto ids = encoder.ids(row);
    std::vector<std::int32_t> tags(ids.size(), -1);
    std::string unknown;
    for (const auto& [label, piece] : rows.marks[row]) {
      if (piece < 0) {
        report.leave_out_word();
        continue;
      }
      const Index id = known[static_cast<std::size_t>(label)];
      if (id < 0) unknown = rows.labels.text(label);
      tags[static_cast<std::size_t>(encoder.position(row, piece))] = static_cast<std::int32_t>(id);
    }
    if (!unknown.empty()) {
      report.leave_out_label(row, unknown, unknown_labels_, labels());
      continue;
    }
    if (report.is_cut(row, std::ssize(ids), truncates())) {
      crop(ids);
      crop(tags);
    }
    if (std::ranges::all_of(tags, [](std::int32_t tag) { return tag < 0; })) {
      report.leave_out("no word has a token");
      continue;
    }
    examples.sentences.add(ids);
    examples.tags.add(tags);
  }
  report.tell(callback);
  return examples;
}

LabelledText Tagging::example_of(const Examples& examples, Index i) const {
  return text_of_ids(examples.sentences[i]);
}

BatchLoss Tagging::batch_loss(const Network& network, const Examples& examples,
                              std::span<const Index> chosen, Context& context,
                              TaggingMetrics* metrics) const {
  std::vector<std::vector<std::int32_t>> sentences;
  std::vector<std::span<const std::int32_t>> tags;
  Index targets = 0;
  for (const Index i : chosen) {
    sentences.push_back(examples.sentences[i]);
    tags.push_back(examples.tags[i]);
    targets += std::ranges::count_if(tags.back(), [](std::int32_t tag) { return tag >= 0; });
  }
  const TokenBatch batch = pad(sentences);
  const Indices answers = pad(tags, -1).ids;
  const Tensor scores = network.logits((*network.model)(batch.ids, batch.lengths, context));
  if (metrics) metrics->update(scores, answers);
  return {cross_entropy(scores, answers), targets};
}

Sentence Tagging::read(std::string_view text) const {
  Sentence sentence = Reader::read(text);
  sentence.targets = labelled_tokens(cut_sentence(text, cutting()));
  std::erase(sentence.targets, -1);
  require<UserError>(!sentence.targets.empty(), "\"{}\" has no word that the tokenizer reads",
                     text);
  return sentence;
}

std::vector<Index> Tagging::labelled_tokens(const CutSentence& cut) const {
  std::vector<Index> begins = {0};
  for (const std::string& piece : cut.pieces)
    begins.push_back(begins.back() + std::ssize(tokenizer().tokens_of(piece)));
  const Index end = std::min(begins.back(), max_length()) - tokenizer().special_tokens();
  std::vector<Index> tokens;
  for (const Index piece : cut.positions) {
    const Index token = piece < 0 ? -1 : begins[static_cast<std::size_t>(piece)];
    tokens.push_back(token < end ? token : -1);
  }
  return tokens;
}

LabelledText Tagging::read_line(const TsvRow& row) const {
  row.demand(row.fields.size() <= 2, "must be a sentence or labels<TAB>sentence, has {} columns",
             row.fields.size());
  LabelledText line{.text = row.fields.back(), .sentence = read(row.fields.back())};
  line.index = line.sentence.targets.front();
  if (row.fields.size() < 2) return line;
  const auto labels = words(row.fields[0]);
  const std::vector<Index> tokens = labelled_tokens(cut_sentence(line.text, cutting()));
  row.demand(labels.size() == tokens.size(), "has {} labels for {} words", labels.size(),
             tokens.size());
  // The first word whose label says something, else the first that has a token.
  std::optional<std::size_t> word;
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (tokens[i] >= 0 && (!word || (labels[*word] == "O" && labels[i] != "O"))) word = i;
  line.index = tokens[*word];
  line.label = labels[*word];
  line.answer = label_id(this->labels(), line.label);
  return line;
}

}  // namespace qkv
