#include "inspect/labelled_text.h"

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

/// A position among the tokens of a sentence from an index that counts its words between white
/// space.
Index position_of(const std::string& text, const TokenizedWords& sentence) {
  Index index = -1;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, index);
  require<UserError>(
      error == std::errc() && rest == end && index >= 0 && index < std::ssize(sentence.positions),
      "the word's index must be from 0 to {}, got {}", sentence.positions.size() - 1, text);
  return sentence.positions[static_cast<std::size_t>(index)];
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
    const TokenizedWords sentence = tokenized_words(text);
    result.index = position_of(columns[1], sentence);
    if (kind == TaskKind::coreference) result.answer = position_of(columns[0], sentence);
  } else if (!result.sentence.targets.empty()) {
    result.index = result.sentence.targets.front();
  }
  return result;
}

std::vector<LabelledText> read_labelled_texts(const Trained& model,
                                              const std::filesystem::path& file) {
  std::vector<LabelledText> texts;
  for (const auto& [number, line] : read_filled_lines(file)) try {
      texts.push_back(labelled_text(model, line));
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}:{}: {}", file.string(), number, error.what()));
    }
  return texts;
}

}  // namespace qkv
