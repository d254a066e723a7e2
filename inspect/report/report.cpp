#include "inspect/report/report.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "inspect/documents/json.h"
#include "inspect/report/encode.h"
#include "inspect/report/examples.h"
#include "inspect/report/model_data.h"
#include "inspect/report/page.h"
#include "inspect/report/training_data.h"
#include "inspect/report/views.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using report::LoadedRun;
using report::RunGroup;

constexpr std::size_t most_characters = 2'480'000;  // of a page with weights
constexpr std::size_t attention_budget = 600'000;   // characters for all runs
constexpr std::size_t most_checkpoints = 100;       // of all runs, each with three at least
constexpr std::size_t most_points = 80;
constexpr std::size_t many_runs = 10;  // from which weights are shown more coarsely

/// The first of a group's runs, and the outcomes of the others, which have other seeds or folds.
Json group_view(const RunGroup& group, std::span<const std::string> sentences, std::size_t groups) {
  const LoadedRun& run = group.front();
  const report::Examples examples = report::examples_of(run.model(), sentences);
  const auto points = std::span(examples.texts).first(std::min(most_points, examples.texts.size()));
  Json view = report::summary_view(run);
  view["sentences"] = report::texts_view(examples.shown);
  view["attention"] =
      report::attention_view(run.checkpoints, examples.shown, attention_budget / groups);
  view["texts_from"] = examples.from;
  view["points"] = report::texts_view(points);
  view["embedding"] = report::embedding_view(run.checkpoints, points);
  view["weights"] = report::weight_view(run, groups < many_runs ? 64 : 32);
  view.update(report::outcome_view(run));
  view["others"] = Json::array();
  for (const LoadedRun& other : std::span(group).subspan(1))
    view["others"].push_back(report::outcome_view(other));
  view["model"] = report::model_view(run.model());
  return view;
}

/// Whether runs learned from the same files, and are measured on the same.
bool share_data(std::span<const RunGroup> groups) {
  const auto data_of = [](const RunGroup& group) {
    const TaskOptions& task = group.front().config().task;
    return std::tie(task.kind, task.train, task.valid, task.test, task.data, task.valid_share,
                    task.test_share, task.folds);
  };
  return std::ranges::all_of(
      groups, [&](const RunGroup& other) { return data_of(other) == data_of(groups.front()); });
}

/// The common beginning of the runs' names, as in a comparison; else the name of their folder.
std::string title_of(std::span<const RunGroup> groups, const fs::path& folder) {
  const auto title = [](const RunGroup& group) {
    const std::string& name = group.front().config().name;
    return name.substr(0, name.find(" - "));
  };
  const std::string first = title(groups.front());
  if (std::ranges::all_of(groups, [&](const RunGroup& other) { return title(other) == first; }))
    return first;
  return fs::absolute(folder / "").lexically_normal().parent_path().filename().string();
}

/// A part of a run that an earlier one has, too, becomes the index of that run.
void share(Json& runs, const Json::json_pointer& part) {
  for (std::size_t i = 1; i < runs.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (!runs[j][part].is_number() && runs[j][part] == runs[i][part]) {
        runs[i][part] = j;
        break;
      }
}

/// The run that the page opens on: of those with attention the one with the best test results, the
/// last of equals.
std::size_t main_run(const Json& runs) {
  const auto rank = [](const Json& run) {
    const Json test = run.value("test", Json::object());
    double score = -test.value("loss", std::numeric_limits<double>::infinity());
    for (const char* metric : {"exact_match", "accuracy"}) score = test.value(metric, score);
    return std::pair(!run["attention"].is_null(), score);
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < runs.size(); ++i)
    if (rank(runs[i]) >= rank(runs[best])) best = i;
  return best;
}

/// The weights that fit beside `data`. Recorded attention, which has its place in "attention" of a
/// run, stays where a checkpoint is left out, since the page computes that of the others.
std::vector<report::CodedWeights> choose_weights(Json& data, const report::ModelWeights& weights) {
  Json& runs = data["runs"];
  std::vector<Json> recorded;
  for (Json& run : runs) recorded.push_back(std::exchange(run["attention"], nullptr));
  for (;;) {
    const std::size_t size = report::characters_around_data() + report::encoded_size(text_of(data));
    auto chosen = weights.choose(data["main"], size < most_characters ? most_characters - size : 0);
    bool is_complete = true;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const auto count = std::ranges::count(chosen, i, &report::CodedWeights::run);
      if (recorded[i].is_null() || count == std::ssize(runs[i]["stops"])) continue;
      runs[i]["attention"] = std::exchange(recorded[i], nullptr);
      is_complete = false;
    }
    if (is_complete) return chosen;
  }
}

/// The page's data as its scripts read them: JSON, 0, and the bytes of the weights.
std::string bytes_of(Json& data, std::span<const report::CodedWeights> chosen) {
  std::string bytes;
  for (const report::CodedWeights& weights : chosen) {
    Json& views = data["runs"][weights.run]["model"]["weights"];
    views[std::to_string(weights.checkpoint)] = {{"at", bytes.size()}, {"bits", weights.bits}};
    bytes += weights.bytes;
  }
  return text_of(data) + '\0' + bytes;
}

/// The page of runs, each of which `complete` loads when its turn comes.
ReportPage page_of(const std::string& title, std::vector<RunGroup>& groups, const fs::path& folder,
                   std::span<const std::string> sentences,
                   const std::function<void(LoadedRun&)>& complete) {
  Json data = {{"name", title},
               {"version", QKV_VERSION},
               {"runs", Json::array()},
               {"main", 0},
               {"same_data", share_data(groups)}};
  Json& runs = data["runs"];
  report::ModelWeights weights;
  report::TrainingData training;
  for (RunGroup& group : groups) {
    LoadedRun& run = group.front();
    complete(run);
    runs.push_back(group_view(group, sentences, groups.size()));
    runs.back()["training"] = training.add(run);
    runs.back()["folder"] = run.folder.lexically_relative(folder).generic_string();
    weights.add(runs.size() - 1, run);
    group.clear();
  }
  for (const char* part : {"/points", "/model/vocabulary"}) share(runs, Json::json_pointer(part));
  data["main"] = main_run(runs);
  data["files"] = training.files();
  const auto chosen = choose_weights(data, weights);
  ReportPage page{report::page(title, bytes_of(data, chosen)), {}};
  for (const auto& [name, text] : training.files()) page.data_files.push_back(name);
  return page;
}

}  // namespace

bool begins_as_report_page(std::string_view beginning) {
  return beginning.starts_with("<!doctype html>") &&
         beginning.find("what it learned</title>") != beginning.npos;
}

ReportPage report_page(const fs::path& folder, std::span<const std::string> sentences) {
  std::vector<RunGroup> groups = report::load_groups(folder);
  const std::size_t checkpoints = std::max<std::size_t>(most_checkpoints / groups.size(), 3);
  return page_of(title_of(groups, folder), groups, folder, sentences,
                 [&](LoadedRun& run) { report::load_checkpoints(run, checkpoints); });
}

ReportPage untrained_page(const ConfigFile& file, const fs::path& folder) {
  std::vector<RunGroup> groups;
  const auto add = [&](const Config& config) {
    LoadedRun run{folder, {}, {}};
    run.checkpoints.push_back({"untrained", {start_run(config)}});
    groups.emplace_back().push_back(std::move(run));
  };
  for (const Variant& variant : file.variants) add(variant.config);
  if (file.variants.empty()) add(file.base);
  report::TrainingData training;
  for (const RunGroup& group : groups)
    require<UserError>(!training.add(group.front()).is_null(),
                       "a page cannot train {}: it holds UTF-8 files of at most 4 MB, 0.6 MB in "
                       "all when compressed, and no other model (train.init)",
                       group.front().config().name);
  return page_of(file.base.name, groups, folder, {}, [](const LoadedRun&) {});
}

}  // namespace qkv
