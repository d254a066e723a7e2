#include "datasets/word_sense.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/random.h"
#include "datasets/text.h"
#include "datasets/text_file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

/// A line of a file, for reading and for errors.
struct Line {
  const fs::path& file;
  std::size_t number;
  std::string text;

  template <class... Args>
  void demand(bool ok, fmt::format_string<const Args&...> text, const Args&... args) const {
    if (!ok)
      throw UserError(fmt::format("{}:{}: {}", file.string(), number, fmt::format(text, args...)));
  }
};

std::vector<Line> lines_of(const fs::path& file) {
  std::vector<Line> lines;
  for (std::string& text : read_lines(file))
    lines.push_back({file, lines.size() + 1, std::move(text)});
  return lines;
}

std::vector<std::string> fields_of(std::string_view text) {
  std::vector<std::string> fields(1);
  for (const char c : text)
    if (c == '\t')
      fields.emplace_back();
    else
      fields.back() += c;
  return fields;
}

std::optional<Index> whole_number(std::string_view text) {
  Index number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

WordSenseExample example_of(const Line& line, std::string label, const std::string& index,
                            const std::string& sentence) {
  WordSenseExample example{std::move(label), words(sentence), 0};
  line.demand(!example.words.empty(), "the sentence is empty");
  const auto number = whole_number(index);
  line.demand(number.has_value(), "the index must be a whole number, got \"{}\"", index);
  line.demand(*number < std::ssize(example.words),
              "the index must be less than the sentence's {} words, got {}", example.words.size(),
              *number);
  example.index = *number;
  return example;
}

using Labels = std::map<std::string, std::string>;

/// {"0": "bank_bank", ...}
Labels read_classes(const fs::path& file) {
  std::string text;
  for (const std::string& line : read_lines(file)) text += line + "\n";
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const bool sound = json.is_object() && !json.empty() &&
                     std::ranges::all_of(json, [](const auto& name) { return name.is_string(); });
  require<UserError>(sound, "{}: must be a JSON object such as {{\"0\": \"sense\"}}",
                     file.string());
  return json.get<Labels>();
}

std::vector<WordSenseExample> read_split(const fs::path& folder, const std::string& split,
                                         const Labels& labels) {
  const fs::path data_file = folder / (split + ".data.txt"),
                 gold_file = folder / (split + ".gold.txt");
  const auto data = lines_of(data_file), gold = lines_of(gold_file);
  require<UserError>(data.size() == gold.size(), "{} has {} lines, {} has {}; they must agree",
                     data_file.string(), data.size(), gold_file.string(), gold.size());
  std::vector<WordSenseExample> examples;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto label = labels.find(gold[i].text);
    gold[i].demand(label != labels.end(), "the label \"{}\" is not in classes_map.txt",
                   gold[i].text);
    const auto fields = fields_of(data[i].text);
    data[i].demand(fields.size() == 2, "must be index<TAB>sentence, got {} fields", fields.size());
    examples.push_back(example_of(data[i], label->second, fields[0], fields[1]));
  }
  return examples;
}

}  // namespace

std::vector<WordSenseExample> read_word_sense_tsv(const fs::path& path) {
  std::vector<WordSenseExample> examples;
  for (const Line& line : lines_of(path)) {
    const auto fields = fields_of(line.text);
    line.demand(fields.size() == 3, "must be label<TAB>index<TAB>sentence, got {} field{}",
                fields.size(), fields.size() == 1 ? "" : "s");
    line.demand(!fields[0].empty(), "the label is empty");
    examples.push_back(example_of(line, fields[0], fields[1], fields[2]));
  }
  return examples;
}

WordSenseSplits read_coarsewsd(const fs::path& folder, double valid_share, std::uint64_t seed) {
  require<UserError>(fs::is_directory(folder),
                     "{}: is not a folder; task.data names the folder of one word of CoarseWSD-20",
                     folder.string());
  const Labels labels = read_classes(folder / "classes_map.txt");
  std::map<std::string, std::vector<WordSenseExample>> by_label;
  for (WordSenseExample& example : read_split(folder, "train", labels))
    by_label[example.label].push_back(std::move(example));

  WordSenseSplits splits;
  Random random(seed, Purpose::shuffling);
  for (const auto& [label, examples] : by_label) {
    const auto held_back =
        static_cast<std::size_t>(std::lround(valid_share * static_cast<double>(examples.size())));
    const auto order = random.next().permutation(std::ssize(examples));
    for (std::size_t i = 0; i < order.size(); ++i)
      (i < held_back ? splits.valid : splits.train)
          .push_back(examples[static_cast<std::size_t>(order[i])]);
  }
  splits.test = read_split(folder, "test", labels);
  return splits;
}

WordSenseExample cropped(const WordSenseExample& example, Index max_words) {
  const Index count = std::ssize(example.words);
  if (count <= max_words) return example;
  const Index begin = std::clamp(example.index - max_words / 2, Index{0}, count - max_words);
  return {example.label,
          {example.words.begin() + begin, example.words.begin() + begin + max_words},
          example.index - begin};
}

}  // namespace qkv
