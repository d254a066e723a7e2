#include "inspect/report/model_data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <tuple>

#include "inspect/report/encode.h"
#include "train/config/option_list.h"
#include "train/config/task_kinds.h"

namespace qkv::report {
namespace {

constexpr Index most_parameters = 1'000'000;  // of a checkpoint: the page leaves larger models out
constexpr int exact = 32, fewest = 12;        // bits of a code
constexpr double least_entropy = 0.6;         // of a code, relative to its bits: for estimates

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

void append_float(std::string& bytes, float value) {
  const auto code = std::bit_cast<std::uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(code >> shift & 0xFF);
}

/// The order in which a run's checkpoints find room: the best one, the first and the last, then
/// those that halve the steps between them, again and again.
int rank_of(std::size_t i, const LoadedRun& run) {
  if (i == run.chosen) return 0;
  return i == 0 || i + 1 == run.checkpoints.size() ? 1 : 2 + 64 - std::countr_zero(i);
}

}  // namespace

Json model_view(const LoadedModel& model) {
  Json json = {{"options", options_json(model.config)},
               {"tokenizer", row_of(tokenizer_kinds, cutting_of(model.config).kind).name},
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
    if (parameter_count(network) > most_parameters) continue;
    Weights& weights = all_.emplace_back(Weights{index, i, rank_of(i, run), {}, {}});
    for (const auto& [path, parameter] : parameters(network)) {
      const auto values = parameter->value().values();
      weights.sizes.push_back(std::ssize(values));
      for (const double value : values) weights.values.push_back(static_cast<float>(value));
    }
  }
}

CodedWeights ModelWeights::coded(const Weights& weights, int bits) {
  CodedWeights result{weights.run, weights.checkpoint, bits, {}};
  std::vector<std::uint32_t> codes;
  codes.reserve(weights.values.size());
  auto rest = std::span(weights.values);
  for (const Index size : weights.sizes) {
    const auto values = rest.first(static_cast<std::size_t>(size));
    rest = rest.subspan(values.size());
    float largest = 1e-30F;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    if (bits < exact) append_float(result.bytes, largest);
    const double most = std::ldexp(1, bits) - 1;
    for (const float value : values)
      codes.push_back(bits == exact ? std::bit_cast<std::uint32_t>(value)
                                    : static_cast<std::uint32_t>(
                                          std::lround((value / largest + 1.0) / 2 * most)));
  }
  for (int shift = 0; shift < bits; shift += 8)
    for (const std::uint32_t code : codes) result.bytes += static_cast<char>(code >> shift & 0xFF);
  return result;
}

/// The most bits with which all fit into `room`, else the fewest.
int ModelWeights::most_bits(const Order& all, std::size_t room) {
  for (const int bits : {exact, 16}) {
    std::size_t size = 0;
    for (const Weights* weights : all)
      if (size <= room) size += encoded_size(coded(*weights, bits).bytes);
    if (size <= room) return bits;
  }
  return fewest;
}

std::vector<CodedWeights> ModelWeights::choose(std::size_t main, std::size_t room) const {
  Order order;
  for (const Weights& weights : all_) order.push_back(&weights);
  std::ranges::stable_sort(order, {}, [main](const Weights* weights) {
    return std::tuple(weights->rank > 0, weights->run != main, weights->rank,
                      weights->values.size());
  });
  const auto others = std::ranges::find_if(order, [](const Weights* w) { return w->rank > 0; });
  const int bits_of_best = most_bits(Order(order.begin(), others), room);
  const int bits_of_others = most_bits(order, room);
  std::vector<CodedWeights> chosen;
  for (const Weights* weights : order) {
    const int bits = weights->rank == 0 ? bits_of_best : bits_of_others;
    const auto least = least_entropy * bits / 8 * static_cast<double>(weights->values.size());
    if (least > static_cast<double>(room)) continue;
    CodedWeights found = coded(*weights, bits);
    const std::size_t size = encoded_size(found.bytes);
    if (size > room) continue;
    room -= size;
    chosen.push_back(std::move(found));
  }
  return chosen;
}

}  // namespace qkv::report
