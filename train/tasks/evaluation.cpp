#include "train/tasks/evaluation.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace qkv {

std::string_view to_string(Split split) {
  return split == Split::train ? "train" : split == Split::valid ? "valid" : "test";
}

std::optional<double> Evaluation::find(std::string_view name) const {
  const auto found = std::ranges::find(metrics, name, [](const auto& m) { return m.first; });
  return found == metrics.end() ? std::nullopt : std::optional(found->second);
}

double Evaluation::metric(std::string_view name) const {
  const auto value = find(name);
  require<ValueError>(value.has_value(), "[evaluation] there is no metric {}", name);
  return *value;
}

double Evaluation::score_by(std::string_view name) const {
  constexpr std::string_view errors[] = {"loss",  "perplexity", "bits_per_token",
                                         "error", "log_loss",   "calibration_error"};
  if (name.empty()) return score;
  const double value = name == "loss" ? loss : metric(name);
  return std::ranges::find(errors, name) == std::end(errors) ? value : -value;
}

std::string Evaluation::headline() const {
  const auto& [name, value] =
      metrics.empty() ? std::pair<std::string, double>("loss", loss) : metrics.front();
  return fmt::format("{} {:.4f}", name, value);
}

TokenCount count_tokens(const IdLists& lists, const Vocabulary& vocabulary) {
  TokenCount count;
  for (Index i = 0; i < lists.size(); ++i) {
    const auto ids = lists[i];
    count.all += std::ssize(ids);
    count.unknown +=
        std::ranges::count_if(ids, [&](std::int32_t id) { return vocabulary.is_unknown(id); });
  }
  return count;
}

Random drawn_for(std::span<const std::int32_t> ids) {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a, of ids in place of bytes
  for (const std::int32_t id : ids) hash = (hash ^ static_cast<std::uint32_t>(id)) * 0x100000001B3;
  constexpr int unused_bits = 64 - 46;  // see `Random::bits`
  return {0, Purpose::sampling, hash >> unused_bits};
}

}  // namespace qkv
