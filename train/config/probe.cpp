#include "train/config/probe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "train/config/config.h"
#include "train/config/toml_document.h"

namespace qkv {
namespace {

/// In the order of the enumeration; cosines, which are numbers, come first.
constexpr auto measures = std::to_array<std::string_view>(
    {"static_cosine", "contextual_cosine", "label", "output", "attends_to"});

std::vector<Option> options_of(Probe& probe) {
  return {
      option("name", probe.name, "claim"),
      option("sentences", probe.sentences, "texts of the claim"),
      option("word", probe.word,
             "word whose vectors and attention are measured; empty: the targets"),
      option("expect", probe.expect, "expectation, as in contextual_cosine < 0.5"),
      option("variants", probe.variants, "variants that claim it; none: all"),
      option("broken_by", probe.broken_by, "interventions that break it"),
      option("swap", probe.swap, "two words that swapped-words exchanges"),
  };
}

Relation relation_of(char c) {
  return c == '<' ? Relation::below : c == '>' ? Relation::above : Relation::equal;
}

std::vector<std::string> texts_in(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return {*text};
  if (const auto* texts = std::get_if<TextList>(&value)) return *texts;
  return {};
}

/// The first thing that a probe lacks.
std::optional<std::string> error_of(const Probe& probe) {
  if (probe.name.empty()) return "needs a name, as in name = \"context decides\"";
  if (probe.sentences.empty())
    return "needs sentences, as in sentences = [\"money bank grows\", \"river bank flows\"]";
  bool swaps = false;
  for (const std::string& name : probe.broken_by) {
    const auto intervention = intervention_of(name);
    if (!intervention)
      return fmt::format("broken_by knows {}, got {}", fmt::join(intervention_names, ", "),
                         shown(name));
    swaps = swaps || *intervention == Intervention::swapped_words;
  }
  if (swaps && probe.swap.size() != 2)
    return "needs two words for swapped-words, as in swap = [\"man\", \"boy\"]";
  return std::nullopt;
}

}  // namespace

std::optional<Intervention> intervention_of(std::string_view name) {
  const auto found = std::ranges::find(intervention_names, name);
  if (found == intervention_names.end()) return std::nullopt;
  return static_cast<Intervention>(found - intervention_names.begin());
}

Expectation parse_expectation(std::string_view text) {
  const auto wrong = [&] {
    return ConfigError(
        fmt::format("expect must be like 'contextual_cosine < 0.5', 'static_cosine = 1', 'label = "
                    "[\"money\", \"river\"]', 'attends_to = \"animal\"' or 'output = \"...\"', got "
                    "{}",
                    shown(text)));
  };
  const auto sign = text.find_first_of("<>=");
  if (sign == text.npos) throw wrong();
  const std::string_view name = text.substr(0, text.find_first_of(" <>="));
  const auto found = std::ranges::find(measures, name);
  const auto value = parse_value(text.substr(sign + 1));
  if (found == measures.end() || !value) throw wrong();
  const Expectation expectation{static_cast<Measure>(found - measures.begin()),
                                relation_of(text[sign]), number_in(*value).value_or(0),
                                texts_in(*value)};
  const bool valid = expectation.measure <= Measure::contextual_cosine
                         ? number_in(*value).has_value()
                         : !expectation.texts.empty() && expectation.relation == Relation::equal;
  if (!valid) throw wrong();
  return expectation;
}

Probe read_probe(const TomlTable& table, std::string_view source) {
  Probe probe;
  const std::vector<Option> options = options_of(probe);
  for (const TomlEntry& entry : table.entries) {
    const auto option = std::ranges::find(options, entry.key, &Option::key);
    if (option == options.end()) {
      std::vector<std::string_view> known;
      known.reserve(options.size());
      for (const Option& o : options) known.push_back(o.key);
      throw ConfigError(fmt::format("{}:{}: unknown key {} of a probe (known here: {})", source,
                                    entry.line, shown(entry.key), fmt::join(known, ", ")));
    }
    if (const auto error = option->assign(entry.value))
      throw ConfigError(fmt::format("{}:{}: {} {}", source, entry.line, entry.key, *error));
  }
  if (const auto error = error_of(probe))
    throw ConfigError(fmt::format("{}:{}: a probe {}", source, table.line, *error));
  try {
    parse_expectation(probe.expect);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}:{}: {}", source, table.line, error.what()));
  }
  return probe;
}

std::string to_toml(const Probe& probe) {
  Probe copy = probe;
  std::string text = "\n[[probe]]\n";
  for (const Option& option : options_of(copy))
    text += fmt::format("{} = {}  # {}\n", option.key, option.print(), option.help);
  return text;
}

}  // namespace qkv
