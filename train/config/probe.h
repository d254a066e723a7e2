#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

struct TomlTable;

/// A change of a trained model or its input that tests a claim: a claim about attention that holds
/// under an intervention on attention was not about attention (Jain & Wallace 2019, "Attention is
/// not Explanation").
enum class Intervention { without_positions, uniform_attention, shuffled_queries, swapped_words };

/// In the order of the enumeration.
inline constexpr auto intervention_names = std::to_array<std::string_view>(
    {"without-positions", "uniform-attention", "shuffled-queries", "swapped-words"});
std::optional<Intervention> intervention_of(std::string_view name);

/// A claim about a trained model that can be checked; a [[probe]] of a configuration.
struct Probe {
  std::string name;
  std::vector<std::string> sentences;
  std::string word;    ///< whose vectors and attention are measured; empty: the targets
  std::string expect;  ///< 'contextual_cosine < 0.5', see `parse_expectation`
  std::vector<std::string> variants;   ///< of the configuration that claim it; none: all
  std::vector<std::string> broken_by;  ///< names of interventions under which it must not hold
  std::vector<std::string> swap;       ///< two words that "swapped-words" exchanges

  friend bool operator==(const Probe&, const Probe&) = default;
};

enum class Measure { static_cosine, contextual_cosine, label, output, attends_to };
enum class Relation { below, above, equal };

/// A parsed expectation: a number for cosines, texts for the rest.
struct Expectation {
  Measure measure;
  Relation relation;
  double number = 0;
  std::vector<std::string> texts = {};
};

/// Reads `<measure> <relation> <value>`: a cosine with <, > or = and a number; label, output or
/// attends_to with = and a text or a list of texts in TOML. Throws ConfigError.
Expectation parse_expectation(std::string_view text);

/// Throws ConfigError "<source>:<line>: ..." for unknown keys, values of the wrong type, and what
/// is missing.
Probe read_probe(const TomlTable& table, std::string_view source);

/// A [[probe]] that `read_probe` reads back.
std::string to_toml(const Probe& probe);

}  // namespace qkv
