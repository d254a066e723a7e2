#include "train/labelled_text.h"

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

LabelledText labelled_text(const Task& task, const std::string& line) {
  const auto columns = columns_of(line);
  require<UserError>(columns.size() <= 3,
                     "must be a sentence, label<TAB>sentence or label<TAB>index<TAB>sentence, has "
                     "{} columns",
                     columns.size());
  LabelledText result{columns.size() > 1 ? columns[0] : "", columns.back(),
                      task.read(columns.back()), -1};
  if (columns.size() == 3) {
    result.sentence = indexed(task, columns.back());
    result.index = index_of(columns[1], result.sentence);
  } else if (!result.sentence.targets.empty()) {
    result.index = result.sentence.targets.front();
  }
  return result;
}

std::vector<LabelledText> read_labelled_texts(const Task& task, const std::filesystem::path& file) {
  std::vector<LabelledText> texts;
  for (const std::string& line : read_lines(file)) try {
      texts.push_back(labelled_text(task, line));
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}:{}: {}", file.string(), texts.size() + 1, error.what()));
    }
  return texts;
}

}  // namespace qkv
