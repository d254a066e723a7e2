#include "train/exchange/huggingface.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "datasets/text.h"
#include "train/config/option.h"
#include "train/exchange/exchange.h"
#include "train/exchange/foreign_model.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> architectures = {
    "BertModel", "BertForMaskedLM", "BertForPreTraining", "BertForSequenceClassification",
    "GPT2Model", "GPT2LMHeadModel"};
constexpr std::array<std::string_view, 2> model_types = {"bert", "gpt2"};

Architecture architecture_of(const JsonOptions& options) {
  const nlohmann::json& list = options.find("architectures");
  const bool named = list.is_array() && list.size() == 1 && list[0].is_string();
  const auto found = named ? std::ranges::find(architectures, list[0].get_ref<const std::string&>())
                           : architectures.end();
  options.demand(found != architectures.end(), "architectures",
                 fmt::format("must be a list of one of {}", fmt::join(architectures, ", ")));
  const auto architecture = static_cast<Architecture>(found - architectures.begin());
  options.demand(options.find("model_type").is_string(), "model_type", "must be bert or gpt2");
  const bool is_gpt2 = options.choice("model_type", model_types) == 1;
  options.demand(is_gpt2 == (architecture >= Architecture::gpt2), "model_type",
                 fmt::format("must be that of {}", *found));
  return architecture;
}

/// The folder's name, where a run can have it.
std::string name_of(const fs::path& folder) {
  const std::string name = fs::absolute(folder / "").lexically_normal().parent_path().filename();
  return !is_utf8(name) || name_error(name) ? "imported" : name;
}

}  // namespace

ForeignModel read_huggingface(const fs::path& folder) {
  JsonOptions options(folder / "config.json");
  const Architecture architecture = architecture_of(options);
  Import import{folder, std::move(options), architecture};
  import.model_class = architectures[static_cast<std::size_t>(architecture)];
  import.config.name = name_of(folder);
  import.config.model.position = PositionKind::learned;
  ForeignModel model;
  model.not_used = architecture >= Architecture::gpt2 ? read_gpt2(import) : read_bert(import);
  import.checkpoint.config = to_toml(import.config);
  begin_run(import.checkpoint, folder / "model.safetensors");
  model.checkpoint = std::move(import.checkpoint);
  model.added_tokens = std::move(import.added_tokens);
  return model;
}

}  // namespace qkv
