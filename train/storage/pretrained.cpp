#include "train/storage/pretrained.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <vector>

#include "datasets/text.h"
#include "datasets/text_file.h"

namespace qkv {
namespace {

bool is_integer(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

void load_vectors(const std::filesystem::path& file, const Vocabulary& vocabulary,
                  Parameter& table) {
  const Index width = table.shape()[1];
  auto values = table.value().values();
  std::vector<bool> found(static_cast<std::size_t>(vocabulary.size()));
  for (const auto& [number, line] : read_filled_lines(file)) {
    const auto fields = words(line);
    if (number == 1 && fields.size() == 2 && is_integer(fields[0]) && is_integer(fields[1]))
      continue;
    require<UserError>(std::ssize(fields) == width + 1,
                       "{}:{}: must be a word and model.width = {} values, got {}", file.string(),
                       number, width, fields.empty() ? std::size_t{0} : fields.size() - 1);
    const auto id = static_cast<std::size_t>(vocabulary.id(fields[0]));
    const bool wanted = id > Vocabulary::unknown && !found[id];
    for (std::size_t i = 1; i < fields.size(); ++i) {
      const std::string& text = fields[i];
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      require<UserError>(
          error == std::errc() && end == text.data() + text.size() && std::isfinite(value),
          "{}:{}: \"{}\" is not a finite number", file.string(), number, text);
      if (wanted) values[id * static_cast<std::size_t>(width) + i - 1] = value;
    }
    if (wanted) found[id] = true;
  }
  require<UserError>(std::ranges::find(found, true) != found.end(),
                     "{}: has none of the {} words of the training data", file.string(),
                     vocabulary.size());
  table.assign(Tensor::from(values, table.shape(), table.value().dtype()));
}

std::string word2vec_text(const Vocabulary& vocabulary, const Tensor& table) {
  const auto values = table.values();
  const auto width = static_cast<std::size_t>(table.dim(1));
  Index count = 0;
  std::string lines;
  for (std::size_t id = Vocabulary::unknown + 1; id < vocabulary.tokens().size(); ++id) {
    const std::string& token = vocabulary.tokens()[id];
    if (words(token) != std::vector{token}) continue;
    const auto row = std::span(values).subspan(id * width, width);
    lines += fmt::format("{} {:.9g}\n", token, fmt::join(row, " "));
    ++count;
  }
  return fmt::format("{} {}\n", count, width) + lines;
}

}  // namespace qkv
