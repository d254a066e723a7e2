#include "datasets/conll.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "datasets/text.h"
#include "datasets/text_file.h"
#include "datasets/unicode.h"

namespace qkv {
namespace {

bool is_one_of(char c, std::string_view letters) {
  return letters.find(c) != letters.npos;
}

using ConllFields = std::vector<std::string>;

ConllFields conll_fields(std::string_view line) {
  const char separator = line.find('\t') == line.npos ? ' ' : '\t';
  ConllFields columns;
  while (!line.empty()) {
    const std::string_view column = line.substr(0, line.find(separator));
    const std::string_view text = separator == ' ' ? column : trimmed(column);
    if (separator == '\t' || !text.empty()) columns.emplace_back(text);
    line.remove_prefix(std::min(column.size() + 1, line.size()));
  }
  while (!columns.empty() && trimmed(columns.back()).empty()) columns.pop_back();
  return columns;
}

bool is_conll_u(const ConllFields& columns) {
  return columns.size() == 10 &&
         columns.front().find_first_not_of("0123456789-.") == std::string::npos;
}

/// Reads lines as words and labels.
class ConllReader {
 public:
  ConllReader(const std::filesystem::path& path,
              const std::function<void(const LabelledWords&)>& use)
      : path_(path), use_(use) {}

  void add(std::size_t number, const std::string& line) {
    const ConllFields columns = conll_fields(line);
    const bool ends = columns.empty() || columns.front() == "-DOCSTART-" ||
                      line.starts_with("#begin document") || line.starts_with("#end document");
    if (ends) return finish();
    if (line.starts_with('#') && sentence_.words.empty()) {
      early_.push_back({number, line});
      return;
    }
    width_ = columns.size();
    add_early();
    add_word(number, line, columns);
  }
  void finish() {
    add_early();
    if (!sentence_.words.empty()) {
      use_(sentence_);
      ++sentences_;
    }
    sentence_ = {};
  }
  std::size_t sentences() const { return sentences_; }

 private:
  /// Adds the lines before a sentence's first that begin with "#" and are no comments.
  void add_early() {
    for (const auto& [number, line] : std::exchange(early_, {})) {
      const ConllFields columns = conll_fields(line);
      const bool is_comment = (line.starts_with("# ") && line.find('=') != line.npos) ||
                              (width_ > 0 && columns.size() != width_);
      if (!is_comment) add_word(number, line, columns);
    }
  }

  void add_word(std::size_t number, const std::string& line, const ConllFields& columns) {
    const bool is_u = is_conll_u(columns);
    // A range of words that are written as one, and a word that is not written.
    if (is_u && columns.front().find_first_of("-.") != std::string::npos) return;
    const std::string place = fmt::format("{}:{}", path_.string(), number);
    require<UserError>(columns.size() >= 2, "{}: must be a word and its label, got \"{}\"", place,
                       columns.front());
    require_short_tokens(line, place);
    const std::string &word = columns[is_u ? 1 : 0],
                      &label = columns[is_u ? 3 : columns.size() - 1];
    if (trimmed(word).empty()) return;
    if (sentence_.words.empty()) sentence_.place = place;
    sentence_.words.push_back(word);
    sentence_.labels.push_back(composed(label));
  }

  const std::filesystem::path& path_;
  const std::function<void(const LabelledWords&)>& use_;
  LabelledWords sentence_;
  std::vector<std::pair<std::size_t, std::string>> early_;  ///< with their numbers
  std::size_t width_ = 0;  ///< columns of the last word; 0 before the first
  std::size_t sentences_ = 0;
};

}  // namespace

void for_each_conll_sentence(const std::filesystem::path& path, ReadCallback& callback,
                             const std::function<void(const LabelledWords&)>& use) {
  ConllReader reader(path, use);
  for_each_line(path, callback,
                [&](std::size_t number, const std::string& line) { reader.add(number, line); });
  reader.finish();
  require<UserError>(reader.sentences() > 0, "{}: has no sentence", path.string());
}

bool is_span_label(std::string_view label) {
  return label.size() > 2 && label[1] == '-' && is_one_of(label[0], "BIMELSU");
}

std::vector<Span> spans_of(const std::vector<std::string>& labels) {
  std::vector<Span> spans;
  bool open = false;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string& label = labels[i];
    const auto at = static_cast<Index>(i);
    const bool is_part = is_span_label(label);
    if (is_part && open && is_one_of(label[0], "IMEL") && label.substr(2) == spans.back().type)
      ++spans.back().end;
    else if (is_part)
      spans.push_back({at, at + 1, label.substr(2)});
    open = is_part && is_one_of(label[0], "BIM");
  }
  return spans;
}

}  // namespace qkv
