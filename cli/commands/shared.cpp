#include "cli/commands/shared.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cli/terminal.h"
#include "core/parallel.h"
#include "datasets/text.h"
#include "datasets/text_file.h"
#include "train/tasks/task.h"

namespace qkv::commands {
Option model_argument(std::string& model) {
  return required({"MODEL", &model,
                   "A checkpoint file, or a run folder: its best checkpoint, else its newest"});
}

Option config_argument(std::string& config) {
  return required({"CONFIG", &config, "TOML file, such as configs/bank.toml"});
}

Option set_option(std::vector<std::string>& changes) {
  return {"--set KEY=VALUE", &changes, "Change an option: --set train.steps=100"};
}

Option word_option(std::string& word) {
  return {"--word WORD", &word, "The word that is asked about [the one the model was trained on]"};
}

Option untrained_flag(bool& flag) {
  return {"--untrained", &flag, "The model as it was before its first step"};
}

Option int8_flag(bool& flag) {
  return {"--int8", &flag, "Linear layers with int8 weights and a scale for each row"};
}

Option threads_option() {
  return {"--threads", set_threads, "Number of threads; results do not depend on it",
          from_to(1, 256)};
}

Option layer_option(Index& layer) {
  return {"--layer", &layer, "Only this layer, counted from 0", not_negative};
}

Option head_option(Index& head) {
  return {"--head", &head, "Only this head, counted from 0", not_negative};
}

Option evaluation_data_option(std::string& data) {
  return {"--data FILE", &data, "File in the task's format [the config's test split]"};
}

Option target_option(std::string& target) {
  return {"--target", &target, "Text that an encoder-decoder writes [its own output]"};
}

SavedModel load_model(const std::string& model, bool before_training) {
  SavedModel trained = qkv::load_model(model);
  return before_training ? SavedModel{untrained(trained)} : std::move(trained);
}

void require_in_range(Index value, std::size_t count, std::string_view option) {
  require<UserError>(value < static_cast<Index>(count),
                     "{} {}: the model has {} of them, counted from 0", option, value, count);
}

void require_data(const Config& config, const std::string& model, std::string_view fix) {
  const TaskOptions& task = config.task;
  for (const std::string& file : {task.train, task.valid, task.test, task.data})
    require<UserError>(file.empty() || std::filesystem::exists(file),
                       "{}: its data no longer exists: there is no {}; name other "
                       "data with {}",
                       model, file, fix);
}

std::vector<Question> lines_of(const std::string& file, Document& document) {
  std::vector<Question> texts;
  ReadCallback silent;
  for_each_line(file, silent, [&](std::size_t number, const std::string& text) {
    if (trimmed(text).empty())
      document.add_note("{}:{}: blank line skipped", file, number);
    else
      texts.push_back({text, fmt::format("{}:{}", file, number), number});
  });
  require<UserError>(!texts.empty(), "{}: all of its lines are blank", file);
  return texts;
}

EvaluationData evaluation_data(const LoadedModel& trained, const std::string& model,
                               const std::string& data, ReadCallback& callback) {
  const TaskOptions& named = trained.config.task;
  const bool has_test = !named.test.empty();
  if (data.empty() && draws_splits(named) && (!has_test || named.folds > 0)) {
    const auto task = drawn_task(trained, model, callback);
    const Split split = measured_split(*task, model);
    return {fmt::format("{} split", to_string(split)),
            [&trained, task, split](const EvaluationOptions& options, ReadCallback&) {
              return task->evaluate(*trained.network, split, options);
            }};
  }
  const std::string file = !data.empty() ? data : has_test ? named.test : named.valid;
  require<UserError>(!file.empty(), "the config of {} names no test data; name some with --data",
                     model);
  require<UserError>(
      !data.empty() || std::filesystem::exists(file),
      "{}: its data no longer exists: there is no {}; name other data with --data FILE", model,
      file);
  return {!data.empty() ? data
          : has_test    ? "test split"
                        : "valid split",
          [&trained, file](const EvaluationOptions& options, ReadCallback& reading) {
            return trained.task->evaluate(*trained.network, file, reading, options);
          }};
}

bool draws_splits(const TaskOptions& task) {
  return task.train.empty() || task.folds > 0;
}

std::shared_ptr<const Task> drawn_task(const LoadedModel& trained, const std::string& model,
                                       ReadCallback& callback) {
  require_data(trained.config, model, "--data FILE");
  std::shared_ptr<const Task> task = task_with_data(trained, callback);
  require<UserError>(
      task->vocabularies() == trained.task->vocabularies(),
      "the training data has changed since {} was trained; name the data with --data", model);
  return task;
}

Split measured_split(const Task& task, const std::string& model) {
  const Split split = task.size(Split::test) > 0 ? Split::test : Split::valid;
  require<UserError>(task.size(split) > 0,
                     "the config of {} names no test data; name some with --data", model);
  return split;
}

void add_evaluation(Document& document, const std::string& data, const Evaluation& evaluation) {
  std::string text =
      fmt::format("{}: {} examples  loss {:.4f}", data, evaluation.count, evaluation.loss);
  Cells rows = {
      {"data", "examples", "loss"},
      {data, fmt::format("{}", evaluation.count), fmt::format("{:.4f}", evaluation.loss)}};
  for (const auto& [name, value] : evaluation.metrics) {
    const std::string part = fmt::format("  {} {:.4f}", name, value);
    const std::string line = text.substr(text.rfind('\n') + 1);
    if (display_width(line) + std::ssize(part) > output_width()) text += '\n';
    text += part;
    rows[0].push_back(name);
    rows[1].push_back(fmt::format("{:.4f}", value));
  }
  document.add_line(text + "\n", rows);
}

Cells to_table(const std::vector<VariantProbe>& probes) {
  Cells rows = {{"variant", "probe", "after", "expected", "found", ""}};
  for (const VariantProbe& probed : probes) {
    const ProbeResult& result = probed.result;
    const Probe& probe = result.probe;
    const auto add = [&](const std::string& after, const std::string& expected,
                         const Finding& finding, bool is_right) {
      // A long generated text must not widen the whole table; --json has all of it.
      rows.push_back({probed.variant, probe.name, after, expected,
                      abbreviated(finding.measured, 72), is_right ? "pass" : "FAIL"});
    };
    add("training", probe.expect, result.trained, result.trained.holds);
    for (std::size_t i = 0; i < result.broken.size(); ++i)
      add(probe.broken_by[i], "not " + probe.expect, result.broken[i], !result.broken[i].holds);
  }
  if (std::ranges::all_of(probes, &std::string::empty, &VariantProbe::variant))
    for (auto& row : rows) row.erase(row.begin());
  return rows;
}

Json to_json(const Finding& finding) {
  return finding.value ? Json(*finding.value) : Json(finding.measured);
}

Json to_json(const std::vector<VariantProbe>& probes) {
  Json list = Json::array();
  for (const auto& [variant, result] : probes) {
    Json json = object({{"name", result.probe.name},
                        {"expect", result.probe.expect},
                        {"found", to_json(result.trained)},
                        {"holds", result.trained.holds},
                        {"broken_by", Json::array()},
                        {"passes", result.passes()}});
    if (!variant.empty()) json["variant"] = variant;
    for (std::size_t i = 0; i < result.broken.size(); ++i)
      json["broken_by"].push_back(object({{"intervention", result.probe.broken_by[i]},
                                          {"found", to_json(result.broken[i])},
                                          {"holds", result.broken[i].holds}}));
    list.push_back(json);
  }
  return list;
}

std::vector<VariantProbe> probed(const LoadedModel& model, const std::string& variant) {
  std::vector<VariantProbe> results;
  for (ProbeResult& result : check_probes(model)) results.push_back({variant, std::move(result)});
  return results;
}

Sentence read_sentence(const Task& task, const std::string& text) {
  require<UserError>(is_utf8(text), "the sentence is not valid UTF-8");
  return task.read(text);
}

void write_target(const LoadedModel& model, Sentence& sentence, const std::string& target) {
  sentence.written = model.task->write(*model.network, sentence, target);
  require<UserError>(sentence.written || target.empty(),
                     "--target: the model writes no text; it is for encoder-decoders");
}

std::vector<std::string> marked(const Sentence& sentence, std::span<const Index> asked) {
  std::vector<std::string> words;
  for (const std::string& word : sentence.words) words.push_back(visible(word));
  for (const Index i : asked) {
    std::string& word = words[static_cast<std::size_t>(i)];
    word = fmt::format("[{}]", word);
  }
  return words;
}

void note_written(Document& document, const std::filesystem::path& file) {
  document.add_note("wrote {}", file.string());
}

void note_unknown_words(Document& document, const Task& task, std::span<const Sentence> sentences) {
  std::vector<std::string_view> unknown;
  std::set<std::string_view> distinct;
  for (const Sentence& sentence : sentences)
    for (std::size_t i = 0; i < sentence.ids.size(); ++i)
      if (task.vocabulary().is_unknown(sentence.ids[i]) && sentence.words[i] != mask_text &&
          !task.tokenizer().is_ngram(sentence.words[i]) &&
          distinct.insert(sentence.words[i]).second)
        unknown.push_back(sentence.words[i]);
  if (unknown.empty()) return;
  constexpr std::size_t most = 20;
  const std::size_t shown = std::min(unknown.size(), most), more = unknown.size() - shown;
  document.add_note("not in the vocabulary, read as <unk>: {}{}",
                    fmt::join(std::span(unknown).first(shown), " "),
                    more ? fmt::format(" and {} more", more) : "");
}

Index position_of(const Task& task, const Sentence& sentence, const std::string& word,
                  const std::string& text) {
  if (word.empty()) {
    require<UserError>(!sentence.targets.empty(),
                       "\"{}\" has no word that the model was trained on; name one with --word",
                       text);
    return sentence.targets.front();
  }
  const auto found = task.occurrences(sentence, word);
  require<UserError>(!found.empty(), "\"{}\" does not contain the word \"{}\"", text, word);
  return found.front();
}

}  // namespace qkv::commands
