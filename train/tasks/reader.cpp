#include "train/tasks/reader.h"

#include <algorithm>
#include <set>

#include "datasets/batch.h"
#include "datasets/text.h"
#include "train/config/task_kinds.h"

namespace qkv {

bool is_bag_of_words(const Config& config) {
  return config.task.kind == TaskKind::classify &&
         config.model.kind == ModelKind::static_embedding &&
         config.task.tokenizer.value_or(TokenizerKind::word) == TokenizerKind::word;
}

Cutting cutting_of(const Config& config) {
  const Cutting usual = row_of(task_kinds(), config.task.kind).traits.cutting;
  return {config.task.tokenizer.value_or(usual.kind),
          config.task.lower_case.value_or(usual.lower_case),
          is_bag_of_words(config) ? config.task.ngrams : 1};
}

Reader::Reader(const Config& config)
    : options_(config.task), max_length_(config.model.max_length), cutting_(cutting_of(config)) {}

void Reader::learn_tokens(const Vocabulary::Counts& pieces, const Vocabularies& known) {
  if (is_imported(cutting_.kind)) {
    require<UserError>(!known.empty(),
                       "task.tokenizer \"{}\" has the tokens of an imported model; name its run "
                       "with train.init",
                       row_of(tokenizer_kinds, cutting_.kind).name);
    return restore_tokens(known);
  }
  set_tokenizer(Tokenizer::learn(cutting_, pieces,
                                 {.min_count = options_.min_count, .merges = options_.merges},
                                 known.empty() ? Tokens() : token_list(known, "tokens")));
}

void Reader::restore_tokens(const Vocabularies& vocabularies) {
  const bool merges = cutting_.kind == TokenizerKind::byte_level;
  set_tokenizer({cutting_, token_list(vocabularies, "tokens"),
                 merges ? token_list(vocabularies, "merges") : Tokens()});
}

const Reader::Tokens& Reader::list(std::string_view name) const {
  static const Tokens none;
  const auto found = lists_.find(name);
  return found == lists_.end() ? none : found->second;
}

void Reader::set_list(std::string_view name, Tokens list) {
  lists_[std::string(name)] = std::move(list);
}

Index Reader::outputs() const {
  return labels().empty() ? vocabulary().size() : std::ssize(labels());
}

Reader::Vocabularies Reader::vocabularies() const {
  Vocabularies lists(lists_.begin(), lists_.end());
  lists["tokens"] = vocabulary().tokens();
  if (const ByteMerges* merges = tokenizer().merges()) lists["merges"] = merges->texts();
  return lists;
}

void Reader::set_tokenizer(Tokenizer tokenizer) {
  const Index ends = 2 * tokenizer.special_tokens();
  require<UserError>(max_length_ > ends,
                     "model.max_length = {} must be more than the {} tokens that begin and end a "
                     "sentence",
                     max_length_, ends);
  tokenizer_ = std::move(tokenizer);
}

LabelledText Reader::text_of_ids(std::vector<std::int32_t> ids) const {
  LabelledText text;
  text.sentence.words = vocabulary().tokens(ids);
  text.text = tokenizer().joined(text.sentence.words);
  text.sentence.ids = std::move(ids);
  return text;
}

Sentence Reader::sentence_of(std::span<const std::string> pieces) const {
  Sentence sentence;
  for (const std::string& piece : pieces) {
    tokenizer().encode_piece(piece, sentence.ids);
    for (std::string& token : tokenizer().tokens_of(piece))
      sentence.words.push_back(std::move(token));
  }
  return sentence;
}

Sentence Reader::read(std::string_view text) const {
  return fitted(sentence_of(cut_sentence(text, cutting_).pieces));
}

Index Reader::crop_begin(Index length, Index index) const {
  const Index begin = tokenizer().special_tokens();
  return qkv::crop_begin(length - 2 * begin, index - begin, max_length() - 2 * begin);
}

Sentence Reader::fitted(Sentence sentence) const {
  require<UserError>(!sentence.words.empty(), "the sentence is empty; give at least one word");
  const Index length = std::ssize(sentence.words);
  require<UserError>(
      length <= max_length() || options_.truncate,
      "the sentence has {} {}, more than the model's longest, model.max_length = {}", length,
      cutting_.kind == TokenizerKind::word && cutting_.ngrams == 1 ? "words" : "tokens",
      max_length());
  if (length > max_length()) {
    crop(sentence.words);
    crop(sentence.ids);
  }
  return sentence;
}

void Reader::for_each_line(const std::filesystem::path& file, ReadCallback& callback,
                           const UseRow& use) const {
  for_each_row(file, Columns(form(), options_.columns, true), callback, use);
}

std::vector<Index> Reader::occurrences(const Sentence& sentence, const std::string& word) const {
  std::vector<std::string> wanted = {word};
  if (std::ranges::find(sentence.words, word) == sentence.words.end()) {
    const auto [pieces, positions] = cut_phrase(word, cutting_);
    const auto named = std::ranges::find_if(positions, [](Index piece) { return piece >= 0; });
    if (named == positions.end()) return {};
    const auto first = pieces.begin() + *named;
    wanted = sentence_of({first, std::find_if(first + 1, pieces.end(), is_one_mark)}).words;
  }
  std::vector<Index> found;
  for (auto at = sentence.words.begin();; ++at) {
    at = std::search(at, sentence.words.end(), wanted.begin(), wanted.end());
    if (at == sentence.words.end()) return found;
    found.push_back(at - sentence.words.begin());
  }
}

LabelledText Reader::read_line(const TsvRow& row) const {
  row.require_labelled_text();
  LabelledText line{.text = row.fields.back(), .sentence = read(row.fields.back())};
  if (row.fields.size() == 3)
    line.index = row.position(1, row.sentence(2, cutting_));
  else if (!line.sentence.targets.empty())
    line.index = line.sentence.targets.front();
  return line;
}

Scores Reader::scores(const Network& network, const Sentence& sentence, Index index,
                      Context& context) const {
  const Indices ids(sentence.ids, {1, std::ssize(sentence.ids)});
  const Tensor x = (*network.model)(ids, {}, context);
  return {reshape(network.logits(slice(x, 1, index, index + 1)), {-1}),
          labels().empty() ? vocabulary().tokens() : labels(), "W y_i + b"};
}

Scores Reader::no_scores(const Network& network, const Sentence& sentence, Context& context) {
  const std::vector<std::int32_t> ids[] = {sentence.ids};
  const TokenBatch batch = pad(ids);
  (*network.model)(batch.ids, batch.lengths, context);
  return {};
}

std::optional<WrittenText> Reader::write(const Network&, const Sentence&, std::string_view,
                                         Context&) const {
  return std::nullopt;
}

bool Reader::has_choices(const Sentence&) const {
  return true;
}

std::string Reader::refusal(const Sentence&, std::string_view) const {
  return "";
}

ReadText Reader::read_answerable(std::string_view text) const {
  ReadText answerable{std::string(text), read(text)};
  const std::string refusal = this->refusal(answerable.sentence, text);
  require<UserError>(refusal.empty(), "{}", refusal);
  return answerable;
}

std::vector<Scores> Reader::scores_of_rows(const Tensor& logits, const Tokens& choices,
                                           std::string_view formula) {
  std::vector<Scores> scores;
  for (Index i = 0; i < logits.dim(0); ++i)
    scores.push_back({reshape(slice(logits, 0, i, i + 1), {-1}), choices, std::string(formula)});
  return scores;
}

std::vector<Scores> Reader::scores_of(const Network& network, std::span<const AnswerTarget> targets,
                                      Context& context) const {
  std::vector<std::span<const std::int32_t>> sentences;
  std::vector<std::int32_t> sentence_of_target;
  const ReadText* last = nullptr;
  for (const AnswerTarget& target : targets) {
    if (target.text != std::exchange(last, target.text))
      sentences.push_back(target.text->sentence.ids);
    sentence_of_target.push_back(static_cast<std::int32_t>(sentences.size() - 1));
  }
  const TokenBatch batch = pad(sentences);
  std::vector<std::int32_t> rows;
  for (std::size_t i = 0; i < targets.size(); ++i)
    rows.push_back(sentence_of_target[i] * static_cast<std::int32_t>(batch.ids.dim(1)) +
                   static_cast<std::int32_t>(targets[i].index.value_or(0)));
  const Tensor x = (*network.model)(batch.ids, batch.lengths, context);
  const Tensor asked = embedding(reshape(x, {-1, x.dim(2)}), Indices(rows, {std::ssize(rows)}));
  return scores_of_rows(network.logits(asked), labels().empty() ? vocabulary().tokens() : labels(),
                        "W y_i + b");
}

std::vector<Prediction> Reader::answers(const Network& network,
                                        std::span<const AnswerTarget> targets,
                                        Context& context) const {
  if (targets.empty()) return {};
  const NoGrad no_grad;
  std::vector<Scores> scores = scores_of(network, targets, context);
  std::vector<Prediction> answers;
  for (std::size_t i = 0; i < targets.size(); ++i)
    answers.push_back(prediction_of(targets[i].text->text, targets[i].index, std::move(scores[i])));
  return answers;
}

std::vector<std::vector<Prediction>> Reader::predictions(const Network& network,
                                                         std::span<const ReadText> texts,
                                                         Context& context) const {
  std::vector<AnswerTarget> targets;
  for (const ReadText& text : texts) {
    for (const Index index : text.sentence.targets) targets.push_back({&text, index});
    if (text.sentence.targets.empty()) targets.push_back({&text, std::nullopt});
  }
  std::vector<Prediction> answers = this->answers(network, targets, context);
  std::vector<std::vector<Prediction>> predictions(texts.size());
  for (std::size_t i = 0; i < targets.size(); ++i)
    predictions[static_cast<std::size_t>(targets[i].text - texts.data())].push_back(
        std::move(answers[i]));
  return predictions;
}

std::vector<Prediction> Reader::predict(const Network& network, std::string_view text,
                                        Context& context) const {
  const ReadText one[] = {read_answerable(text)};
  return std::move(predictions(network, one, context).front());
}

Prediction prediction_of(std::string_view text, std::optional<Index> index, Scores scores) {
  const auto probabilities = softmax(scores.logits).values();
  const auto best = std::ranges::max_element(probabilities);
  Prediction prediction{std::string(text), index,
                        scores.choices[static_cast<std::size_t>(best - probabilities.begin())],
                        *best};
  prediction.choices = std::move(scores.choices);
  prediction.logits = scores.logits.values();
  prediction.probabilities = probabilities;
  return prediction;
}

const std::vector<std::string>& token_list(const Reader::Vocabularies& vocabularies,
                                           std::string_view name) {
  const auto found = vocabularies.find(std::string(name));
  require<FileError>(found != vocabularies.end() && !found->second.empty(),
                     "the checkpoint has no /vocabulary/{}", name);
  require<FileError>(std::ranges::find(found->second, "") == found->second.end(),
                     "the checkpoint's /vocabulary/{} has an empty text", name);
  return found->second;
}

const std::vector<std::string>& distinct_list(const Reader::Vocabularies& vocabularies,
                                              std::string_view name) {
  const auto& list = token_list(vocabularies, name);
  std::set<std::string_view> known;
  for (const std::string& text : list)
    require<FileError>(known.insert(text).second,
                       "the checkpoint's /vocabulary/{} has \"{}\" twice", name, text);
  return list;
}

}  // namespace qkv
