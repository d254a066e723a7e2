#include "cli/commands/fit_data.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "train/config/task_kinds.h"

namespace qkv::commands {
namespace {

/// Each example of a split as bytes.
std::vector<std::string> texts_of(const Task& task, Split split) {
  std::vector<std::string> texts;
  for (Index i = 0; i < task.size(split); ++i) {
    const LabelledText example = task.example(split, i);
    const auto ids = std::as_bytes(std::span(example.sentence.ids));
    texts.emplace_back(reinterpret_cast<const char*>(ids.data()), ids.size());
  }
  return texts;
}

std::string lengths_of(const Task& task) {
  std::vector<Index> lengths;
  for (Index i = 0; i < task.size(Split::train); ++i) lengths.push_back(task.tokens(i));
  std::ranges::sort(lengths);
  return fmt::format("{} to {} tokens a text, the median is {}", lengths.front(), lengths.back(),
                     lengths[lengths.size() / 2]);
}

std::vector<std::string> facts_of(const FitData& data) {
  const auto texts = texts_of(*data.task, Split::train), tests = texts_of(*data.task, Split::test);
  const std::set<std::string> distinct(texts.begin(), texts.end());
  std::vector<std::string> facts = {
      fmt::format("{}: {} training examples for {}, {} of them the same text as an earlier one",
                  data.file, texts.size(), row_of(task_kinds(), data.kind).name,
                  texts.size() - distinct.size()),
      data.task->label_summary(), lengths_of(*data.task)};
  const auto leaked = std::ranges::count_if(
      tests, [&](const std::string& text) { return distinct.contains(text); });
  if (!tests.empty())
    facts.push_back(fmt::format("{} test examples, {} of them the text of a training example",
                                tests.size(), leaked));
  return facts;
}

}  // namespace

FitData read_data(const std::string& file, const Config& config, ReadCallback& callback) {
  const auto start = std::chrono::steady_clock::now();
  FitData data{file, config.task.kind, make_task(config, callback), 0, {}};
  data.reading = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  data.facts = facts_of(data);
  return data;
}

}  // namespace qkv::commands
