#include "inspect/report/views.h"

#include <algorithm>
#include <cmath>

#include "core/ops.h"
#include "inspect/attention_flow.h"
#include "inspect/block_average.h"
#include "inspect/documents/probes.h"
#include "inspect/report/encode.h"
#include "inspect/report/training_data.h"
#include "inspect/word_vectors.h"

namespace qkv::report {
namespace {

/// Sizes of the data as the config names it; only the vocabulary's where the data no longer exists.
Json sizes_of(const LoadedModel& model) {
  Json sizes = {{"vocabulary", model.task->vocabulary().size()}};
  const auto lists = model.task->vocabularies();
  if (const auto labels = lists.find("labels"); labels != lists.end())
    sizes["labels"] = labels->second;
  try {
    const auto task = task_with_data(model, silent_reading);
    for (const Split split : {Split::train, Split::valid, Split::test})
      sizes[std::string(to_string(split))] = task->size(split);
  } catch (const UserError&) {
    sizes["missing"] = true;
  }
  return sizes;
}

/// "bank - learned, 4 heads" -> "learned, 4 heads"
std::string variant_name(const std::string& name) {
  const auto at = name.find(" - ");
  return at == name.npos ? name : name.substr(at + 3);
}

/// [layer, head, query, key] in one row.
std::vector<double> flat(const LayerWeights& layers) {
  std::vector<double> result;
  for (const Tensor& layer : layers) {
    const auto values = layer.values();
    result.insert(result.end(), values.begin(), values.end());
  }
  return result;
}

std::vector<WordVector> vectors_of(const RunCheckpoint& checkpoint,
                                   std::span<const LabelledText> texts) {
  std::vector<WordVector> words;
  for (const LabelledText& text : texts)
    words.push_back(word_vector(checkpoint.model, text.sentence, text.index));
  return words;
}

/// To three decimals.
Json rounded(std::vector<std::array<double, 2>> points) {
  for (auto& point : points)
    for (double& v : point) v = std::round(v * 1000) / 1000;
  return points;
}

std::string floats_of(const Tensor& tensor) {
  const auto values = tensor.values();
  return encoded_floats(std::vector<float>(values.begin(), values.end()));
}

/// The block average of a matrix under `name`.
void add_block_average(Json& view, const std::string& name, const Tensor& matrix, Index blocks) {
  const Tensor averages = block_average(matrix, blocks, blocks);
  const auto values = averages.values();
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  view["rows"] = averages.dim(0);
  view["columns"] = averages.dim(1);
  view[name == "values" ? "largest" : "largest_" + name] = largest;
  view[name] = encoded_signed(values, largest);
}

}  // namespace

Json summary_view(const LoadedRun& run) {
  Json stops = Json::array();
  for (const auto& [note, model] : run.checkpoints)
    stops.push_back({{"step", model.step}, {"note", note}});
  return {{"name", variant_name(run.config().name)},
          {"config", to_toml(shown_config(run))},
          {"parameters", parameter_count(*run.model().network)},
          {"data", sizes_of(run.model())},
          {"stops", stops}};
}

Json outcome_view(const LoadedRun& run) {
  Json outcome = {{"metrics", run.metrics}, {"best_step", nullptr}};
  if (run.checkpoint().note == "best") outcome["best_step"] = run.model().step;
  for (const Json& event : run.metrics) {
    if (event.contains("seconds")) outcome["seconds"] = event["seconds"];
    if (event["split"] == "test") outcome["test"] = event;
  }
  outcome["probes"] = documents::probes(run.model());
  return outcome;
}

Json texts_view(std::span<const LabelledText> texts) {
  Json list = Json::array();
  for (const LabelledText& text : texts)
    list.push_back({{"text", text.text},
                    {"label", text.label},
                    {"tokens", text.sentence.words},
                    {"index", text.index}});
  return list;
}

Json attention_view(std::span<const RunCheckpoint> checkpoints,
                    std::span<const LabelledText> sentences, std::size_t budget) {
  Json view = {{"stops", Json::array()}, {"sentences", Json::array()}};
  const auto weights_of = [](const RunCheckpoint& checkpoint, const LabelledText& text) {
    return self_attention(recorded(checkpoint.model, text.sentence));
  };
  std::size_t cost = 0;  // characters of all sentences at one checkpoint
  for (const LabelledText& text : sentences) {
    const LayerWeights layers = weights_of(checkpoints.back(), text);
    const std::string last = encoded_weights(flat(layers));
    cost += last.size();
    view["sentences"].push_back({{"layers", layers.size()},
                                 {"heads", layers.empty() ? 0 : layers[0].dim(0)},
                                 {"weights", Json::array({last})}});
  }
  if (cost == 0) return nullptr;
  const auto chosen = spread(checkpoints.size(), std::max<std::size_t>(budget / cost, 1));
  view["stops"] = chosen;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    Json& sentence = view["sentences"][i];
    Json weights = Json::array();
    for (const std::size_t stop : chosen)
      weights.push_back(
          stop + 1 == checkpoints.size()
              ? sentence["weights"][0]
              : Json(encoded_weights(flat(weights_of(checkpoints[stop], sentences[i])))));
    sentence["weights"] = std::move(weights);
  }
  return view;
}

Json embedding_view(std::span<const RunCheckpoint> checkpoints,
                    std::span<const LabelledText> texts) {
  if (texts.empty()) return nullptr;
  Json view = Json::object();
  std::vector<std::vector<WordVector>> all;
  all.reserve(checkpoints.size());
  for (const RunCheckpoint& checkpoint : checkpoints) all.push_back(vectors_of(checkpoint, texts));
  for (const auto& [name, vector] : {std::pair{"before", &WordVector::static_vector},
                                     std::pair{"after", &WordVector::contextual}}) {
    const auto components = principal_components(stacked(all.back(), vector), 2);
    Json points = Json::array();
    for (const auto& words : all)
      points.push_back(rounded(in_plane(components, stacked(words, vector))));
    view[name] = {{"share", components.variance_fraction},
                  {"mean", floats_of(components.mean)},
                  {"directions", floats_of(components.directions)},
                  {"points", points}};
  }
  return view;
}

Json weight_view(const LoadedRun& run, Index blocks) {
  Json views = Json::array();
  const auto old = parameters(*run.checkpoints.front().model.network);
  for (const auto& [path, parameter] : parameters(*run.model().network)) {
    const Shape& shape = parameter->shape();
    if (shape.rank() != 2) continue;
    Json view = {{"path", path}, {"shape", std::vector<Index>(shape.begin(), shape.end())}};
    add_block_average(view, "values", *parameter, blocks);
    const auto found = std::ranges::find(old, path, &NamedParameter::path);
    if (found != old.end() && run.checkpoints.size() > 1)
      add_block_average(view, "before", *found->parameter, blocks);
    views.push_back(view);
  }
  return views;
}

}  // namespace qkv::report
