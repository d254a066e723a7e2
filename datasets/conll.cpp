#include "datasets/conll.h"

#include <utility>

#include "core/error.h"
#include "datasets/text.h"
#include "datasets/text_file.h"

namespace qkv {

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

std::vector<Span> spans_of(const std::vector<std::string>& labels) {
  std::vector<Span> spans;
  bool open = false;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string& label = labels[i];
    const bool begins = label.starts_with("B-"), continues = label.starts_with("I-");
    const auto at = static_cast<Index>(i);
    const std::string type = begins || continues ? label.substr(2) : "";
    if (continues && open && spans.back().type == type)
      ++spans.back().end;
    else if (begins || continues)
      spans.push_back({at, at + 1, type});
    open = begins || continues;
  }
  return spans;
}

}  // namespace qkv
