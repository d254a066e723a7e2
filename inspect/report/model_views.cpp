#include "inspect/report/model_views.h"

#include <algorithm>
#include <cmath>

#include "core/ops.h"
#include "inspect/attention_flow.h"
#include "inspect/block_average.h"
#include "inspect/decomposition.h"
#include "inspect/probe_check.h"
#include "inspect/report/encode.h"
#include "inspect/word_vectors.h"

namespace qkv::report {
namespace {

constexpr std::size_t long_sentence = 64;  // words, from which 8 bits a weight do

/// [layer, head, query, key] in one row.
std::vector<double> flat(const LayerWeights& layers) {
  std::vector<double> result;
  for (const Tensor& layer : layers) {
    const auto values = layer.values();
    result.insert(result.end(), values.begin(), values.end());
  }
  return result;
}

Json sentence_view(std::vector<RunCheckpoint>& checkpoints, std::span<const std::size_t> chosen,
                   const LabelledText& text) {
  const int bits = text.sentence.words.size() > long_sentence ? 8 : 16;
  Json view = {{"layers", 0}, {"heads", 0}, {"bits", bits}, {"weights", Json::array()}};
  for (const std::size_t checkpoint : chosen) {
    const LayerWeights layers =
        self_attention(recorded(checkpoints[checkpoint].model, text.sentence));
    view["layers"] = layers.size();
    view["heads"] = layers.empty() ? 0 : layers[0].dim(0);
    view["weights"].push_back(encoded_weights(flat(layers), bits));
  }
  return view;
}

/// Characters that the sentences' weights take at one checkpoint.
std::size_t cost_of(LoadedModel& model, std::span<const LabelledText> sentences) {
  std::size_t cost = 0;
  for (const LabelledText& text : sentences) {
    const auto weights = flat(self_attention(recorded(model, text.sentence)));
    cost += weights.size() * (text.sentence.words.size() > long_sentence ? 4 : 8) / 3;
  }
  return cost;
}

/// A sentence as the mean of its words.
WordVector mean_of(const std::vector<WordVector>& words) {
  WordVector result = words[0];
  for (const auto vector : {&WordVector::static_vector, &WordVector::contextual})
    result.*vector = mean(stacked(words, vector), 0).values();
  return result;
}

std::vector<WordVector> vectors_of(RunCheckpoint& checkpoint, std::span<const LabelledText> texts) {
  std::vector<WordVector> words;
  for (const LabelledText& text : texts) {
    const auto all = word_vectors(checkpoint.model, text.sentence, -1);
    words.push_back(text.index < 0 ? mean_of(all) : all[static_cast<std::size_t>(text.index)]);
  }
  return words;
}

Json points_of(const Tensor& projected) {
  const auto values = projected.values();
  const auto axes = static_cast<std::size_t>(projected.dim(1));
  const auto rounded = [](double v) { return std::round(v * 1000) / 1000; };
  Json points = Json::array();
  for (std::size_t i = 0; i < values.size(); i += axes)
    points.push_back({rounded(values[i]), axes > 1 ? rounded(values[i + 1]) : 0.0});
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

Json attention_view(std::vector<RunCheckpoint>& checkpoints,
                    std::span<const LabelledText> sentences, std::size_t budget) {
  const std::size_t cost = cost_of(checkpoints.back().model, sentences);
  if (cost == 0) return nullptr;
  const auto chosen = spread(checkpoints.size(), std::max<std::size_t>(budget / cost, 1));
  Json view = {{"stops", chosen}, {"sentences", Json::array()}};
  for (const LabelledText& text : sentences)
    view["sentences"].push_back(sentence_view(checkpoints, chosen, text));
  return view;
}

Json embedding_view(std::vector<RunCheckpoint>& checkpoints, std::span<const LabelledText> texts) {
  if (texts.empty()) return nullptr;
  const auto last = vectors_of(checkpoints.back(), texts);
  Json view = Json::object();
  std::vector<std::vector<WordVector>> all;
  all.reserve(checkpoints.size());
  for (RunCheckpoint& checkpoint : checkpoints) all.push_back(vectors_of(checkpoint, texts));
  for (const auto& [name, vector] : {std::pair{"before", &WordVector::static_vector},
                                     std::pair{"after", &WordVector::contextual}}) {
    const auto components = principal_components(stacked(last, vector), 2);
    Json points = Json::array();
    for (const auto& words : all)
      points.push_back(points_of(components.project(stacked(words, vector))));
    view[name] = {{"share", components.variance_fraction},
                  {"mean", floats_of(components.mean)},
                  {"directions", floats_of(components.directions)},
                  {"points", points}};
  }
  return view;
}

Json probe_view(const LoadedModel& model) try {
  Json views = Json::array();
  const auto finding_of = [](const std::string& after, const Finding& finding) {
    return Json{{"after", after}, {"measured", finding.measured}, {"holds", finding.holds}};
  };
  for (const auto& result : check_probes(model)) {
    const auto& [probe, trained, broken] = result;
    Json findings = Json::array({finding_of("", trained)});
    for (std::size_t i = 0; i < broken.size(); ++i)
      findings.push_back(finding_of(probe.broken_by[i], broken[i]));
    views.push_back({{"name", probe.name},
                     {"expect", probe.expect},
                     {"sentences", probe.sentences},
                     {"passes", result.passes()},
                     {"findings", findings}});
  }
  return views;
} catch (const UserError& error) {
  return Json::array({{{"error", error.what()}}});
}

Json weight_view(LoadedModel& model, LoadedModel& before, Index blocks) {
  Json views = Json::array();
  const auto old = parameters(*before.network);
  for (const auto& [path, parameter] : parameters(*model.network)) {
    const Shape& shape = parameter->shape();
    if (shape.rank() != 2) continue;
    Json view = {{"path", path}, {"shape", std::vector<Index>(shape.begin(), shape.end())}};
    add_block_average(view, "values", *parameter, blocks);
    const auto found = std::ranges::find(old, path, &NamedParameter::path);
    if (found != old.end()) add_block_average(view, "before", *found->parameter, blocks);
    views.push_back(view);
  }
  return views;
}

}  // namespace qkv::report
