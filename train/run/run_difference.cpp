#include "train/run/run_difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace qkv {
namespace {

const std::string missing = "missing";

std::string type_of(const Tensor& tensor) {
  return fmt::format("{} {}", to_string(tensor.dtype()), tensor.shape());
}

std::optional<Difference> first_difference(const std::string& place, const std::string& expected,
                                           const std::string& found) {
  if (expected == found) return std::nullopt;
  return Difference{place, expected, found};
}

/// Bits are compared, not values: 0 and -0 differ.
std::optional<Difference> first_difference(const std::string& place, const Tensor& expected,
                                           const Tensor& found) {
  if (auto difference = first_difference(place, type_of(expected), type_of(found)))
    return difference;
  return dispatch(expected.dtype(), [&]<class T>() -> std::optional<Difference> {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto a = expected.data<T>(), b = found.data<T>();
    for (std::size_t i = 0; i < a.size(); ++i)
      if (std::bit_cast<Bits>(a[i]) != std::bit_cast<Bits>(b[i]))
        return Difference{fmt::format("{}[{}]", place, i), fmt::format("{}", a[i]),
                          fmt::format("{}", b[i])};
    return std::nullopt;
  });
}

template <class Value>
std::optional<Difference> first_difference(const std::string& place,
                                           const std::map<std::string, Value>& expected,
                                           const std::map<std::string, Value>& found) {
  for (const auto& [name, value] : expected) {
    const auto other = found.find(name);
    if (other == found.end()) return Difference{place + name, "present", missing};
    if (auto difference = first_difference(place + name, value, other->second)) return difference;
  }
  for (const auto& [name, value] : found)
    if (!expected.contains(name)) return Difference{place + name, missing, "present"};
  return std::nullopt;
}

/// Texts of a checkpoint besides its metrics.
std::map<std::string, std::string> texts_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> texts = {{"config", checkpoint.config},
                                              {"progress/data_hash", checkpoint.data_hash},
                                              {"progress/valid_hash", checkpoint.valid_hash},
                                              {"progress/init", checkpoint.init}};
  for (const auto& [name, value] : checkpoint.progress)
    texts["progress/" + name] = fmt::format("{}", value);
  for (const auto& [name, tokens] : checkpoint.vocabulary)
    texts["vocabulary/" + name] = fmt::format("{}", fmt::join(tokens, "\n"));
  return texts;
}

/// The members of an evaluation but for its times.
std::map<std::string, std::string> measured(const MetricsEvent& event) {
  std::map<std::string, std::string> members;
  const auto json = nlohmann::ordered_json::parse(event.json);
  for (const auto& [name, value] : json.items())
    if (name != "seconds" && name != "tokens_per_second") members[name] = value.dump();
  return members;
}

}  // namespace

std::optional<Difference> first_difference(const Checkpoint& expected, const Checkpoint& found) {
  if (auto difference = first_difference("/step", fmt::format("{}", expected.step),
                                         fmt::format("{}", found.step)))
    return difference;
  if (auto difference = first_difference("/model/", expected.model, found.model)) return difference;
  if (auto difference = first_difference("/optimizer/", expected.optimizer, found.optimizer))
    return difference;
  if (auto difference = first_difference(parse_metrics(expected.metrics).events,
                                         parse_metrics(found.metrics).events)) {
    difference->place = "/progress/metrics, " + difference->place;
    return difference;
  }
  return first_difference("/", texts_of(expected), texts_of(found));
}

std::optional<Difference> first_difference(std::span<const MetricsEvent> expected,
                                           std::span<const MetricsEvent> found) {
  for (std::size_t i = 0; i < std::min(expected.size(), found.size()); ++i)
    if (auto difference =
            first_difference(fmt::format("{} at step {}: ", expected[i].split, expected[i].step),
                             measured(expected[i]), measured(found[i])))
      return difference;
  return first_difference("number of evaluations", fmt::format("{}", expected.size()),
                          fmt::format("{}", found.size()));
}

}  // namespace qkv
