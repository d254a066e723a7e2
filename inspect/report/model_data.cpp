#include "inspect/report/model_data.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <span>
#include <tuple>

#include "inspect/documents/json.h"
#include "inspect/report/encode.h"
#include "train/config/option_list.h"
#include "train/config/task_kinds.h"

namespace qkv::report {
namespace {

constexpr Index most_parameters = 1'000'000;  // of a checkpoint: the page leaves larger models out
constexpr int exact = 32;                     // bits of a code
constexpr std::array bits_of_best = {exact, 16, 12, 10, 8};
constexpr std::array bits_of_others = {exact, 16, 12};

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

std::vector<float> values_of(Network& network) {
  std::vector<float> result;
  for (const auto& [path, parameter] : parameters(network))
    for (const double value : parameter->value().values())
      result.push_back(static_cast<float>(value));
  return result;
}

/// Appends the codes of changes, and the largest of each parameter.
void append_changes(std::span<const float> values, std::span<const float> initial,
                    std::span<const Index> sizes, int bits, std::string& largest_of_each,
                    std::vector<std::uint32_t>& codes) {
  const double most = std::ldexp(1, bits) - 1;
  for (std::size_t begin = 0, i = 0; i < sizes.size(); ++i) {
    const std::size_t end = begin + static_cast<std::size_t>(sizes[i]);
    float largest = 1e-30F;
    for (std::size_t j = begin; j < end; ++j)
      largest = std::max(largest, std::abs(values[j] - initial[j]));
    append_float(largest_of_each, largest);
    for (; begin < end; ++begin) {
      const double change = (values[begin] - initial[begin]) / largest;
      codes.push_back(static_cast<std::uint32_t>(std::lround((change + 1) / 2 * most)));
    }
  }
}

/// The order in which a run's checkpoints find room: the best one, the first and the last, then
/// those that halve the steps between them, again and again.
int rank_of(std::size_t i, const LoadedRun& run) {
  if (i == run.chosen) return 0;
  return i == 0 || i + 1 == run.checkpoints.size() ? 1 : 2 + 64 - std::countr_zero(i);
}

}  // namespace

Json model_view(const LoadedModel& model) {
  return {{"options", options_json(model.config)},
          {"tokenizer", row_of(tokenizer_kinds, cutting_of(model.config).kind).name},
          {"vocabulary", model.task->vocabularies()},
          {"parameters", shapes_of(*model.network)}};
}

void ModelWeights::add(std::size_t index, const LoadedRun& run) {
  const LoadedModel& model = run.model();
  if (parameter_count(*model.network) > most_parameters) return;
  const auto initial = std::make_shared<const std::vector<float>>(
      values_of(*fresh_model(model.config, model.task->vocabularies()).network));
  std::vector<Index> sizes;
  for (const auto& [path, parameter] : parameters(*model.network))
    sizes.push_back(parameter->value().size());
  for (std::size_t i = 0; i < run.checkpoints.size(); ++i)
    all_.push_back(
        {index, i, rank_of(i, run), sizes, values_of(*run.checkpoints[i].model.network), initial});
}

CodedWeights ModelWeights::coded(const Weights& weights, int bits) {
  CodedWeights result{weights.run, weights.checkpoint, bits, {}};
  std::vector<std::uint32_t> codes;
  if (bits == exact)
    for (const float value : weights.values) codes.push_back(std::bit_cast<std::uint32_t>(value));
  else
    append_changes(weights.values, *weights.initial, weights.sizes, bits, result.bytes, codes);
  for (int shift = 0; shift < bits; shift += 8)
    for (const std::uint32_t code : codes) result.bytes += static_cast<char>(code >> shift & 0xFF);
  return result;
}

/// The first of `choices` with which all fit into `room`, else the last.
int ModelWeights::fitting_bits(const Order& all, std::span<const int> choices, std::size_t room) {
  for (const int bits : choices.first(choices.size() - 1)) {
    std::size_t size = 0;
    for (const Weights* weights : all)
      if (size <= room) size += encoded_size(coded(*weights, bits).bytes);
    if (size <= room) return bits;
  }
  return choices.back();
}

std::vector<CodedWeights> ModelWeights::choose(std::size_t main, std::size_t room) const {
  Order order;
  for (const Weights& weights : all_) order.push_back(&weights);
  std::ranges::stable_sort(order, {}, [main](const Weights* weights) {
    return std::tuple(weights->rank > 0, weights->run != main, weights->rank,
                      weights->values.size());
  });
  const auto others = std::ranges::find_if(order, [](const Weights* w) { return w->rank > 0; });
  const int best = fitting_bits(Order(order.begin(), others), bits_of_best, room);
  const int other = fitting_bits(order, bits_of_others, room);
  std::vector<CodedWeights> chosen;
  std::set<std::size_t> full;  // runs of which a checkpoint did not fit, as no other would
  for (const Weights* weights : order) {
    if (full.contains(weights->run)) continue;
    CodedWeights found = coded(*weights, weights->rank == 0 ? best : other);
    const std::size_t size = encoded_size(found.bytes);
    if (size > room) {
      full.insert(weights->run);
      continue;
    }
    room -= size;
    chosen.push_back(std::move(found));
  }
  return chosen;
}

}  // namespace qkv::report
