#include "inspect/report/examples.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include "datasets/text.h"
#include "inspect/probe_check.h"

namespace qkv::report {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_sentences = 6;
constexpr std::size_t most_of_probes = 4;    // of these
constexpr std::size_t most_tokens = 20'000;  // of all texts
constexpr std::size_t short_text = 16;       // words of which a heat map prints the weights

std::size_t length(const LabelledText& text) {
  return text.sentence.words.size();
}

/// The texts of the data that the model can read, up to `most_tokens`.
Examples texts_of_data(const LoadedModel& model) {
  const TaskOptions& task = model.config.task;
  Examples examples;
  std::size_t tokens = 0;
  const auto add = [&](const TsvRow& row) {
    if (tokens > most_tokens) return;
    try {
      LabelledText text = model.task->read_line(row);
      tokens += length(text);
      if (tokens <= most_tokens) examples.texts.push_back(std::move(text));
    } catch (const UserError&) {
      return;
    }
  };
  for (const auto& [from, file] :
       {std::pair("test", task.test), std::pair("valid", task.valid),
        std::pair("training", task.train), std::pair("training and test", task.data)}) {
    if (file.empty() || !fs::is_regular_file(file)) continue;
    examples.from = from;
    model.task->for_each_line(file, silent_reading, add);
    return examples;
  }
  return examples;
}

/// Some of the sentences that the model's probes are about.
std::vector<LabelledText> texts_of_probes(const LoadedModel& model) {
  std::vector<LabelledText> texts;
  for (const Probe& probe : model.config.probes)
    for (const std::string& text : probe.sentences) {
      if (texts.size() == most_of_probes) return texts;
      if (std::ranges::find(texts, text, &LabelledText::text) != texts.end()) continue;
      Sentence sentence = model.task->read(text);
      const auto words = positions_of_word(*model.task, probe, sentence);
      texts.push_back({.text = text,
                       .sentence = std::move(sentence),
                       .index = words.empty() ? -1 : words.front()});
    }
  return texts;
}

/// `count` texts, the labels in turn, from long to short ones, where possible short enough for a
/// heat map to print its values.
std::vector<LabelledText> some_of(const std::vector<LabelledText>& texts, std::size_t count) {
  const bool has_short =
      std::ranges::any_of(texts, [](const auto& text) { return length(text) <= short_text; });
  const std::size_t limit = has_short ? short_text : std::numeric_limits<std::size_t>::max();
  std::map<std::string, std::vector<LabelledText>> by_label;
  for (const LabelledText& text : texts)
    if (length(text) <= limit) by_label[text.label].push_back(text);
  for (auto& [label, list] : by_label) std::ranges::stable_sort(list, std::greater(), length);
  const std::size_t labels = std::max<std::size_t>(by_label.size(), 1);
  const std::size_t rounds = (count + labels - 1) / labels;
  std::vector<LabelledText> result;
  for (std::size_t round = 0; round < rounds; ++round)
    for (const auto& [label, list] : by_label) {
      if (result.size() == count || round >= list.size()) continue;
      result.push_back(list[rounds > 1 ? round * (list.size() - 1) / (rounds - 1) : 0]);
    }
  return result;
}

std::vector<LabelledText> asked(const Task& task, std::span<const std::string> sentences) {
  std::vector<LabelledText> texts;
  for (const std::string& sentence : sentences) {
    require<UserError>(is_utf8(sentence), "the sentence is not valid UTF-8");
    const Sentence read = task.read(sentence);
    texts.push_back({"", sentence, read, read.targets.empty() ? -1 : read.targets.front()});
  }
  return texts;
}

}  // namespace

Examples examples_of(const LoadedModel& model, std::span<const std::string> sentences) {
  Examples examples = texts_of_data(model);
  if (!sentences.empty()) {
    examples.shown = asked(*model.task, sentences);
    return examples;
  }
  examples.shown = texts_of_probes(model);
  std::ranges::move(some_of(examples.texts, most_sentences - examples.shown.size()),
                    std::back_inserter(examples.shown));
  return examples;
}

}  // namespace qkv::report
