#include "layers/pretrained.h"

#include <fast_float/fast_float.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/open_file.h"

namespace qkv {
namespace {

constexpr std::string_view white_space = " \t\n\v\f\r";
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Padding and the unknown word, whose vectors come from no file.
bool is_special(std::string_view token) {
  return token == "<pad>" || token == "<unk>";
}

/// The parts of a line between white space.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const auto begin = line.find_first_not_of(white_space);
    if (begin == line.npos) return fields;
    line.remove_prefix(begin);
    const auto end = std::min(line.find_first_of(white_space), line.size());
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

bool is_digits(std::string_view text) {
  return text.find_first_not_of("0123456789") == text.npos;
}

/// word2vec's first line, "400000 300".
bool is_header(const std::vector<std::string_view>& fields) {
  return fields.size() == 2 && is_digits(fields[0]) && is_digits(fields[1]);
}

/// Rows by token, without those of special tokens.
std::unordered_map<std::string_view, std::size_t> rows_of(std::span<const std::string> tokens) {
  std::unordered_map<std::string_view, std::size_t> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (!is_special(tokens[i])) rows.emplace(tokens[i], i);
  return rows;
}

/// A number such as "-2.5", "+1" or "1e-400", which is 0.
std::optional<double> number_in(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = fast_float::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number =
      error == std::errc() || (error == std::errc::result_out_of_range && value == 0);
  return is_number && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// How many of a line's fields are its word, which may have spaces, when `width` are its values;
/// 0 when they are not.
std::size_t word_fields(std::span<const std::string_view> fields, Index width) {
  if (std::ssize(fields) <= width) return 0;
  const std::size_t count = fields.size() - static_cast<std::size_t>(width);
  return count > 1 && number_in(fields[1]) ? 0 : count;
}

}  // namespace

VectorsFound load_vectors(const std::filesystem::path& file, std::span<const std::string> tokens,
                          Parameter& table) {
  require(table.shape().rank() == 2 && table.shape()[0] == std::ssize(tokens),
          "[load_vectors] {} tokens need a table of as many rows, got {}", tokens.size(),
          table.shape());
  const Index width = table.shape()[1];
  auto values = table.value().values();
  const double largest = dispatch(table.value().dtype(), []<class T>() {
    return static_cast<double>(std::numeric_limits<T>::max());
  });
  const auto rows = rows_of(tokens);
  std::vector<bool> seen(tokens.size());
  VectorsFound result{.words = std::ssize(rows)};
  std::ifstream stream = open_file(file);
  std::size_t number = 0, words = 0;
  std::string announced;
  for (std::string line; std::getline(stream, line);) {
    result.lacks_line_end = stream.eof();
    const bool first = ++number == 1;
    if (first && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
    const auto fields = fields_of(line);
    if (fields.empty()) continue;
    if (first && is_header(fields)) {
      announced = fields[0];
      require<UserError>(number_in(fields[1]) == static_cast<double>(width),
                         "{}:1: announces vectors of {} values; model.width = {}", file.string(),
                         fields[1], width);
      continue;
    }
    ++words;
    const std::size_t word_size = word_fields(fields, width);
    require<UserError>(word_size > 0,
                       "{}:{}: must be a word and model.width = {} values, got {} values",
                       file.string(), number, width, fields.size() - 1);
    const std::string_view last = fields[word_size - 1];
    const std::string_view word(
        fields[0].data(), static_cast<std::size_t>(last.data() - fields[0].data()) + last.size());
    const auto row = rows.find(word);
    const bool is_new = row != rows.end() && !seen[row->second];
    if (is_new) seen[row->second] = true;
    result.found += is_new;
    result.repeated += row != rows.end() && !is_new;
    for (std::size_t i = word_size; i < fields.size(); ++i) {
      const auto value = number_in(fields[i]);
      require<UserError>(value && std::abs(*value) <= largest,
                         "{}:{}: \"{}\" is not a finite number", file.string(), number, fields[i]);
      if (is_new) values[row->second * static_cast<std::size_t>(width) + i - word_size] = *value;
    }
  }
  require<FileError>(!stream.bad(), "{}: cannot be read to its end", file.string());
  require<UserError>(announced.empty() || number_in(announced) == static_cast<double>(words),
                     "{}: the first line announces {} words, the file has {}; is it complete?",
                     file.string(), announced, words);
  require<UserError>(result.found > 0, "{}: has none of the {} words of the training data",
                     file.string(), tokens.size());
  table.assign(Tensor::from(values, table.shape(), table.value().dtype()));
  return result;
}

std::string word2vec_text(std::span<const std::string> tokens, const Tensor& table) {
  const auto values = table.values();
  const auto width = static_cast<std::size_t>(table.dim(1));
  Index count = 0;
  std::string lines;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string& token = tokens[i];
    if (is_special(token) || fields_of(token) != std::vector<std::string_view>{token}) continue;
    lines += token;
    for (const double value : std::span(values).subspan(i * width, width))
      lines += fmt::format(" {:.9g}", value);
    lines += '\n';
    ++count;
  }
  return fmt::format("{} {}\n", count, width) + lines;
}

}  // namespace qkv
