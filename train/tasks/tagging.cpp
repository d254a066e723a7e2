#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "datasets/batch.h"
#include "datasets/conll.h"
#include "datasets/text.h"
#include "train/config/task_kinds.h"
#include "train/tasks/choice_metrics.h"
#include "train/tasks/data_report.h"
#include "train/tasks/example_task.h"
#include "train/tasks/kinds.h"
#include "train/tasks/labels.h"

namespace qkv {
namespace {

/// A sentence of a file as `Tagging::read_line` takes it; a word with white space inside has its
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

/// Sentences and the label of each token, encoded.
struct EncodedTags : EncodedTexts {
  void for_each_ids(const Task::IdsSink& sink) const {
    const std::int32_t end[] = {-2};
    for (Index i = 0; i < size(); ++i) {
      sink(sentences[i]);
      sink(tags[i]);
      sink(end);
    }
  }

  Lists<std::int32_t> tags;  ///< -1 at tokens without a label: all of a word but its first
};

/// Which label has each token? Each contextual vector goes through the output layer. Reads files in
/// CoNLL columns (`for_each_conll_sentence`).
class Tagging final : public RowTask<EncodedTags, TaggingMetrics> {
 public:
  explicit Tagging(const Config& config) : RowTask(config) {}

  /// Its targets are the tokens that have labels in training: the first of each word between white
  /// space. Throws UserError when there is none.
  Sentence read(std::string_view text) const override {
    Sentence sentence = Reader::read(text);
    sentence.targets = labelled_tokens(cut_sentence(text, cutting()));
    std::erase(sentence.targets, -1);
    require<UserError>(!sentence.targets.empty(), "\"{}\" has no word that the tokenizer reads",
                       text);
    return sentence;
  }

  /// `labels<TAB>sentence` with a label a word, or a sentence.
  LabelledText read_line(const TsvRow& row) const override {
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

  void for_each_line(const std::filesystem::path& file, ReadCallback& callback,
                     const UseRow& use) const override {
    for_each_conll_sentence(file, callback, [&](const LabelledWords& sentence) {
      TsvRow row = row_of_words(sentence, cutting());
      use(row);
    });
  }

  std::string label_summary() const override {
    std::vector<Index> counts(labels().size());
    for (const std::int32_t tag : examples(Split::train).tags.flat())
      if (tag >= 0) ++counts[static_cast<std::size_t>(tag)];
    return summary_of(labels(), counts);
  }

 private:
  using Examples = EncodedTags;
  void add_file(const std::filesystem::path& file, Rows& rows,
                ReadCallback& callback) const override {
    for_each_conll_sentence(file, callback, [&](const LabelledWords& sentence) {
      const CutSentence cut = cut_sentence(sentence.words, cutting());
      std::vector<Rows::Mark> words;
      for (std::size_t i = 0; i < sentence.labels.size(); ++i)
        words.push_back(
            {rows.labels.number(sentence.labels[i]), static_cast<std::int32_t>(cut.positions[i])});
      rows.add(sentence.place, cut.pieces, words);
    });
  }

  void learn_lists(const Rows& rows, std::span<const Index> training,
                   const Vocabularies& known) override {
    learn_tokens(rows.corpus.counts(training), known);
    std::set<std::string> labels;
    for (const Index row : training)
      for (const auto& [label, piece] : rows.marks[row])
        if (piece >= 0) labels.insert(rows.labels.text(label));
    set_list("labels", label_list(labels, source_of(options())));
  }

  void restore_lists(const Vocabularies& lists) override {
    set_list("labels", distinct_list(lists, "labels"));
  }
  /// Where each word of a sentence has its label; -1 where nothing of it is left, or it is cut off.
  std::vector<Index> labelled_tokens(const CutSentence& cut) const {
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

  Examples encoded(const Rows& rows, std::span<const Index> chosen,
                   ReadCallback& callback) const override {
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
        tags[static_cast<std::size_t>(encoder.position(row, piece))] =
            static_cast<std::int32_t>(id);
      }
      if (!unknown.empty()) {
        report.leave_out_label(row, unknown, options().unknown_labels, labels());
        continue;
      }
      if (report.is_cut(row, std::ssize(ids), options().truncate)) {
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

  LabelledText example_of(const Examples& examples, Index i) const override {
    return text_of_ids(examples.sentences[i]);
  }
  BatchLoss batch_loss(const Network& network, const Examples& examples,
                       std::span<const Index> chosen, Context& context,
                       TaggingMetrics* metrics) const override {
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

  TaggingMetrics metrics() const override { return TaggingMetrics(labels()); }
};

}  // namespace

std::unique_ptr<Task> make_tagging(const Config& config, const Task::Vocabularies& known,
                                   ReadCallback* callback) {
  return made<Tagging>(config, known, callback);
}

std::optional<Conflict> tagging_conflict(const Config& config) {
  if (cutting_of(config).kind != TokenizerKind::character) return std::nullopt;
  return Conflict{
      {"task.tokenizer", "task.kind"},
      "task.kind \"tagging\" labels words: task.tokenizer must be another than \"char\""};
}

}  // namespace qkv
