#include "inspect/report/model_data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "inspect/report/encode.h"
#include "train/config/option_list.h"
#include "train/config/task_kinds.h"

namespace qkv::report {
namespace {

/// The most characters of one checkpoint: the page leaves larger models out.
constexpr std::size_t most_characters = 2'000'000;

/// The options of [model] and [task] but for paths; finite values of TOML are JSON, too.
Json options_json(const Config& config) {
  Config copy = config;
  Json json;
  for (const Option& option : options_of(copy)) {
    const auto dot = option.key.find('.');
    const std::string table(option.key.substr(0, dot));
    if ((table != "model" && table != "task") || option.path) continue;
    const Json value = Json::parse(option.print(), nullptr, false);
    if (!value.is_discarded()) json[table][std::string(option.key.substr(dot + 1))] = value;
  }
  return json;
}

std::size_t characters(Index parameters) {
  return (static_cast<std::size_t>(parameters) * 4 + 2) / 3 * 4;
}

std::vector<float> values_of(Network& network) {
  std::vector<float> result;
  for (const auto& [path, parameter] : parameters(network))
    for (const double value : parameter->value().values())
      result.push_back(static_cast<float>(value));
  return result;
}

/// The parameters with 16 bits a value.
Json rounded_parameters(Network& network) {
  std::vector<double> fractions, largest;
  for (const auto& [path, parameter] : parameters(network)) {
    const auto values = parameter->value().values();
    largest.push_back(1e-30);
    for (const double value : values) largest.back() = std::max(largest.back(), std::abs(value));
    for (const double value : values) fractions.push_back((value / largest.back() + 1) / 2);
  }
  return {{"largest", largest}, {"values", encoded_weights(fractions, 16)}};
}

/// The order in which a run's checkpoints find room: the best one, the first and the last, then
/// those that halve the steps between them, again and again.
int rank_of(std::size_t i, const LoadedRun& run) {
  if (i == run.chosen) return 0;
  return i == 0 || i + 1 == run.checkpoints.size() ? 1 : 2 + 64 - std::countr_zero(i);
}

}  // namespace

Json model_view(const LoadedModel& model) {
  const Cutting cutting = cutting_of(model.config);
  Json json = {
      {"options", options_json(model.config)},
      {"cutting",
       {{"kind", row_of(tokenizer_kinds, cutting.kind).name}, {"lower_case", cutting.lower_case}}},
      {"reads_texts", !is_imported(cutting.kind)},
      {"vocabulary", model.task->vocabularies()},
      {"parameters", Json::array()}};
  for (const auto& [path, parameter] : parameters(*model.network)) {
    const Shape& shape = parameter->shape();
    json["parameters"].push_back(
        {{"path", path}, {"shape", std::vector<Index>(shape.begin(), shape.end())}});
  }
  return json;
}

void ModelWeights::add(std::size_t index, const LoadedRun& run) {
  for (std::size_t i = 0; i < run.checkpoints.size(); ++i) {
    Network& network = *run.checkpoints[i].model.network;
    if (characters(parameter_count(network)) > most_characters) continue;
    const std::string exact = i == run.chosen ? encoded_floats(values_of(network)) : "";
    const Json rounded = rounded_parameters(network);
    all_.push_back({index, i, rank_of(i, run), exact, rounded, rounded.dump().size()});
  }
}

void ModelWeights::write(Json& runs, std::size_t main, std::size_t room) const {
  std::vector<const Weights*> order;
  std::size_t exact_size = 0;
  for (const Weights& weights : all_) {
    order.push_back(&weights);
    exact_size += weights.exact.size();
  }
  std::ranges::stable_sort(order, {}, [main](const Weights* weights) {
    return std::tuple(weights->rank > 0, weights->run != main, weights->rank, weights->size);
  });
  const bool all_exact = exact_size <= room;
  for (const Weights* weights : order) {
    const bool is_exact = weights->rank == 0 && all_exact;
    const std::size_t size = is_exact ? weights->exact.size() : weights->size;
    if (size > room) continue;
    room -= size;
    runs[weights->run]["model"]["weights"][std::to_string(weights->checkpoint)] =
        is_exact ? Json(weights->exact) : weights->rounded;
  }
}

}  // namespace qkv::report
