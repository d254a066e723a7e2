#include "train/look/labelled_text.h"

#include <charconv>

#include "datasets/text.h"
#include "datasets/text_file.h"

namespace qkv {
namespace {

std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> columns(1);
  for (const char c : line)
    if (c == '\t')
      columns.emplace_back();
    else
      columns.back() += c;
  return columns;
}

Index index_of(const std::string& text, const Sentence& sentence) {
  Index index = -1;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, index);
  require<UserError>(
      error == std::errc() && rest == end && index >= 0 && index < std::ssize(sentence.words),
      "the word's index must be from 0 to {}, got {}", sentence.words.size() - 1, text);
  return index;
}

/// A sentence whose words stand between white space, as an index into it counts them.
Sentence indexed(const Task& task, const std::string& text) {
  Sentence sentence{words(text), {}, {}};
  for (const std::string& word : sentence.words) sentence.ids.push_back(task.vocabulary().id(word));
  return sentence;
}

}  // namespace

LabelledText labelled_text(const Trained& model, const std::string& line) {
  const auto columns = columns_of(line);
  require<UserError>(columns.size() <= 3,
                     "must be a sentence, label<TAB>sentence or label<TAB>index<TAB>sentence, has "
                     "{} columns",
                     columns.size());
  const TaskKind kind = model.config.task.kind;
  const std::string& text = kind == TaskKind::translate ? columns.front() : columns.back();
  const bool labelled = kind == TaskKind::word_sense || kind == TaskKind::classify;
  const Task& task = *model.task;
  LabelledText result{labelled && columns.size() > 1 ? columns[0] : "", text, task.read(text), -1};
  if (columns.size() == 3) {
    result.sentence = indexed(task, text);
    result.index = index_of(columns[1], result.sentence);
    if (kind == TaskKind::coreference) result.answer = index_of(columns[0], result.sentence);
  } else if (!result.sentence.targets.empty()) {
    result.index = result.sentence.targets.front();
  }
  return result;
}

std::vector<LabelledText> read_labelled_texts(const Trained& model,
                                              const std::filesystem::path& file) {
  std::vector<LabelledText> texts;
  for (const std::string& line : read_lines(file)) try {
      texts.push_back(labelled_text(model, line));
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}:{}: {}", file.string(), texts.size() + 1, error.what()));
    }
  return texts;
}

}  // namespace qkv
