#include "datasets/conll.h"

#include <utility>

#include "core/error.h"
#include "datasets/text.h"
#include "datasets/text_file.h"

namespace qkv {
namespace {

bool is_one_of(char c, std::string_view letters) {
  return letters.find(c) != letters.npos;
}

}  // namespace

void for_each_conll_sentence(const std::filesystem::path& path, ReadCallback& callback,
                             const std::function<void(const LabelledWords&)>& use) {
  LabelledWords sentence;
  std::size_t sentences = 0;
  const auto finish = [&] {
    if (!sentence.words.empty()) {
      use(sentence);
      ++sentences;
    }
    sentence = {};
  };
  for_each_line(path, callback, [&](std::size_t number, const std::string& line) {
    const auto columns = words(line);
    if (columns.empty() || columns.front() == "-DOCSTART-") return finish();
    const std::string place = fmt::format("{}:{}", path.string(), number);
    require<UserError>(columns.size() >= 2, "{}: must be a word and its label, got \"{}\"", place,
                       columns.front());
    require_short_tokens(line, place);
    if (sentence.words.empty()) sentence.place = place;
    sentence.words.push_back(columns.front());
    sentence.labels.push_back(columns.back());
  });
  finish();
  require<UserError>(sentences > 0, "{}: has no sentence", path.string());
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
