#include "inspect/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "datasets/text.h"
#include "inspect/labelled_text.h"
#include "inspect/report/encode.h"
#include "inspect/report/model_data.h"
#include "inspect/report/model_views.h"
#include "inspect/report/page.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using report::Json;
using report::RunCheckpoint;

constexpr std::size_t most_characters = 2'950'000;   // of a page with weights
constexpr std::size_t attention_budget = 1'000'000;  // characters for all runs
constexpr std::size_t most_checkpoints = 100;        // of all runs, each with three at least
constexpr std::size_t most_sentences = 6;
constexpr std::size_t most_of_probes = 4;  // of these
constexpr std::size_t most_points = 200;
constexpr std::size_t many_runs = 10;              // from which weights are shown more coarsely
constexpr std::size_t most_shown_tokens = 20'000;  // in the texts of all points

/// Examples to show, and where they are from.
struct Examples {
  std::string from;  ///< "test"
  std::vector<LabelledText> texts;
};

/// Rows that the model can read, up to `most_shown_tokens`.
class Readable {
 public:
  explicit Readable(const Task& task) : task_(task) {}

  void add(const TsvRow& row) {
    if (tokens_ > most_shown_tokens) return;
    try {
      LabelledText text = task_.read_line(row);
      tokens_ += text.sentence.words.size();
      if (tokens_ <= most_shown_tokens) texts_.push_back(std::move(text));
    } catch (const UserError&) {
      return;
    }
  }
  std::vector<LabelledText> texts() && { return std::move(texts_); }

 private:
  const Task& task_;
  std::vector<LabelledText> texts_;
  std::size_t tokens_ = 0;
};

/// From the test data if there are any; nothing where the data no longer exist.
Examples examples_of(const LoadedModel& model) {
  const TaskOptions& task = model.config.task;
  Readable readable(*model.task);
  for (const auto& [from, file] :
       {std::pair("test", task.test), std::pair("valid", task.valid),
        std::pair("training", task.train), std::pair("training and test", task.data)})
    if (!file.empty() && fs::is_regular_file(file)) {
      ReadCallback silent;
      model.task->for_each_line(file, silent, [&](const TsvRow& row) { readable.add(row); });
      return {from, std::move(readable).texts()};
    }
  return {};
}

/// Some of the sentences that the model's probes are about.
std::vector<LabelledText> texts_of_probes(const LoadedModel& model) {
  std::vector<LabelledText> texts;
  for (const Probe& probe : model.config.probes)
    for (const std::string& text : probe.sentences) {
      if (texts.size() == most_of_probes) return texts;
      if (std::ranges::find(texts, text, &LabelledText::text) != texts.end()) continue;
      Sentence sentence = model.task->read(text);
      const auto words =
          probe.word.empty() ? sentence.targets : model.task->occurrences(sentence, probe.word);
      texts.push_back({.text = text,
                       .sentence = std::move(sentence),
                       .index = words.empty() ? -1 : words.front()});
    }
  return texts;
}

/// `count` texts, the labels in turn, long ones first, short enough for a heat map to print its
/// values.
std::vector<LabelledText> chosen(const std::vector<LabelledText>& texts, std::size_t count) {
  const auto length = [](const LabelledText* text) { return text->sentence.words.size(); };
  std::map<std::string, std::vector<const LabelledText*>> by_label;
  std::size_t limit = 16;  // words
  if (std::ranges::none_of(texts, [&](const auto& text) { return length(&text) <= limit; }))
    limit = std::numeric_limits<std::size_t>::max();
  for (const LabelledText& text : texts)
    if (length(&text) <= limit) by_label[text.label].push_back(&text);
  std::vector<LabelledText> result;
  const std::size_t labels = std::max<std::size_t>(by_label.size(), 1);
  const std::size_t rounds = (count + labels - 1) / labels;
  for (std::size_t round = 0; round < rounds; ++round)
    for (auto& [label, list] : by_label) {
      if (result.size() == count || round >= list.size()) continue;
      std::ranges::stable_sort(list, std::greater(), length);
      const std::size_t last = list.size() - 1;
      result.push_back(*list[rounds > 1 ? round * last / (rounds - 1) : 0]);
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

/// Sentences of probes, then of the data.
std::vector<LabelledText> shown_of(const LoadedModel& model,
                                   const std::vector<LabelledText>& texts) {
  std::vector<LabelledText> shown = texts_of_probes(model);
  std::ranges::move(chosen(texts, most_sentences - shown.size()), std::back_inserter(shown));
  return shown;
}

Json described(std::span<const LabelledText> texts) {
  Json list = Json::array();
  for (const LabelledText& text : texts)
    list.push_back({{"label", text.label}, {"tokens", text.sentence.words}, {"index", text.index}});
  return list;
}

/// What came of a run's training and of its claims.
Json outcome_view(const fs::path& run, const LoadedModel& model) {
  Json view = report::outcome_of(run, model);
  view["probes"] = report::probe_view(model);
  return view;
}

/// The first of a variant's runs, and the outcomes of the others, which have other seeds or folds.
Json variant_view(const report::Variant& variant, std::span<const std::string> sentences,
                  std::size_t variants, report::ModelWeights& weights) {
  const fs::path& run = variant.front();
  std::vector<RunCheckpoint> checkpoints =
      report::checkpoints_of(run, std::max<std::size_t>(most_checkpoints / variants, 3));
  auto best = std::ranges::find(checkpoints, "best", &RunCheckpoint::note);
  if (best == checkpoints.end()) best = std::prev(best);
  weights.add(checkpoints, static_cast<std::size_t>(best - checkpoints.begin()));
  LoadedModel& model = best->model;
  const auto [from, texts] = examples_of(model);
  const auto shown = sentences.empty() ? shown_of(model, texts) : asked(*model.task, sentences);
  std::vector<LabelledText> points = texts;
  if (points.size() > most_points) points.resize(most_points);
  Json view = report::summary_of(run, model);
  view["stops"] = Json::array();
  for (const RunCheckpoint& checkpoint : checkpoints)
    view["stops"].push_back({{"step", checkpoint.model.step}, {"note", checkpoint.note}});
  view["sentences"] = described(shown);
  for (std::size_t i = 0; i < shown.size(); ++i) view["sentences"][i]["text"] = shown[i].text;
  view["attention"] = report::attention_view(checkpoints, shown, attention_budget / variants);
  view["texts_from"] = from;
  view["points"] = described(points);
  view["embedding"] = report::embedding_view(checkpoints, points);
  LoadedModel before = untrained(model);
  view["weights"] = report::weight_view(model, before, variants < many_runs ? 64 : 32);
  view.update(outcome_view(run, model));
  view["others"] = Json::array();
  for (const fs::path& other : std::span(variant).subspan(1))
    view["others"].push_back(outcome_view(other, load_model(other)));
  view["model"] = report::model_data(model);
  return view;
}

/// The configs of the runs on a page.
std::vector<Config> configs_of(const Json& runs, std::span<const report::Variant> variants) {
  std::vector<Config> configs;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    configs.push_back(parse_config(runs[i]["config"].get_ref<const std::string&>(), ""));
    locate_files(configs.back(), variants[i].front());
  }
  return configs;
}

/// Whether runs learned from the same files, and are measured on the same.
bool share_data(std::span<const Config> configs) {
  const auto data_of = [](const Config& config) {
    const TaskOptions& task = config.task;
    return std::tie(task.kind, task.train, task.valid, task.test, task.data, task.valid_share,
                    task.test_share, task.folds);
  };
  return std::ranges::all_of(
      configs, [&](const Config& other) { return data_of(other) == data_of(configs.front()); });
}

/// What the names of all runs begin with, as those of a comparison; else that of their folder.
std::string title_of(std::span<const Config> configs, const fs::path& folder) {
  const auto title = [](const Config& config) {
    return config.name.substr(0, config.name.find(" - "));
  };
  const std::string first = title(configs.front());
  if (std::ranges::all_of(configs, [&](const Config& other) { return title(other) == first; }))
    return first;
  return fs::absolute(folder / "").lexically_normal().parent_path().filename().string();
}

/// Points of a run that an earlier one has, too, become the index of that run.
void share_points(Json& runs) {
  for (std::size_t i = 1; i < runs.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (runs[j]["points"].is_array() && runs[j]["points"] == runs[i]["points"]) {
        runs[i]["points"] = j;
        break;
      }
}

}  // namespace

bool begins_as_report_page(std::string_view beginning) {
  return beginning.starts_with("<!doctype html>") &&
         beginning.find("what it learned</title>") != beginning.npos;
}

std::string report_page(const fs::path& run, std::span<const std::string> sentences) {
  const auto variants = report::variants_of(run);
  Json data = {{"name", ""}, {"version", QKV_VERSION}, {"runs", Json::array()}};
  report::ModelWeights weights;
  for (const report::Variant& variant : variants)
    data["runs"].push_back(variant_view(variant, sentences, variants.size(), weights));
  share_points(data["runs"]);
  const std::vector<Config> configs = configs_of(data["runs"], variants);
  data["name"] = title_of(configs, run);
  data["same_data"] = share_data(configs);
  const auto page = [&] {
    return report::page(data["name"].get<std::string>(),
                        data.dump(-1, ' ', false, Json::error_handler_t::replace));
  };
  const std::size_t size = page().size();
  weights.write(data["runs"], size < most_characters ? most_characters - size : 0);
  return page();
}

}  // namespace qkv
