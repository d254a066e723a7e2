#include "train/exchange/exchange.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "train/exchange/torch_names.h"
#include "train/run/run.h"

namespace qkv {
namespace {

const std::string config_key = "qkv.config", names_key = "qkv.names",
                  vocabulary_key = "qkv.vocabulary";

const std::string& metadata(const Safetensors& contents, const std::string& key,
                            const std::filesystem::path& file) {
  const auto found = contents.metadata.find(key);
  require<UserError>(
      found != contents.metadata.end(),
      "{}: its metadata have no {}, which `qkv export` writes; where another program "
      "saved the file, hand on the metadata of the file that it read",
      file.string(), key);
  return found->second;
}

Task::Vocabularies parse_vocabulary(const std::string& text, const std::filesystem::path& file) {
  try {
    return nlohmann::json::parse(text).get<Task::Vocabularies>();
  } catch (const nlohmann::json::exception&) {
    throw UserError(fmt::format("{}: {} in its metadata must be {{\"tokens\": [TEXT, ...], ...}}",
                                file.string(), vocabulary_key));
  }
}

std::string to_json(const Task::Vocabularies& vocabulary, const std::filesystem::path& file) {
  try {
    return nlohmann::json(vocabulary).dump();
  } catch (const nlohmann::json::type_error&) {
    throw CheckpointError(
        fmt::format("{}: /vocabulary holds a text that is not UTF-8", file.string()));
  }
}

}  // namespace

Safetensors exported(const Checkpoint& checkpoint, const std::filesystem::path& file,
                     const std::filesystem::path& folder, ExportNames names) {
  return exported(checkpoint, file, portable(config_of(checkpoint, file), folder), names);
}

Safetensors exported(const Checkpoint& checkpoint, const std::filesystem::path& file,
                     const Config& config, ExportNames names) {
  return {.tensors = names == ExportNames::torch ? to_torch_names(checkpoint.model, config.model)
                                                 : checkpoint.model,
          .metadata = {{"format", "pt"},
                       {config_key, to_toml(config)},
                       {names_key, std::string(row_of(export_names, names).name)},
                       {"qkv.step", std::to_string(checkpoint.step)},
                       {"qkv.version", QKV_VERSION},
                       {vocabulary_key, to_json(checkpoint.vocabulary, file)}}};
}

bool begins_as_export(std::string_view beginning) {
  constexpr std::size_t length_size = 8;
  constexpr std::string_view start = R"({"__metadata__":{"format":"pt","qkv.config":")";
  return beginning.size() > length_size && beginning.substr(length_size).starts_with(start);
}

void begin_run(Checkpoint& checkpoint, const std::filesystem::path& file) {
  const std::string tensor = non_finite_tensor(checkpoint);
  require<CheckpointError>(tensor.empty(), "{}: {} holds a value that is not finite", file.string(),
                           tensor);
  model_of(checkpoint, file);  // throws unless the parameters are those of the config's model
  checkpoint.progress = {{"interval_loss", 0},
                         {"interval_steps", 0},
                         {"best_score", std::numeric_limits<double>::lowest()},
                         {"best_loss", 0},
                         {"best_step", 0}};
}

Checkpoint imported(const Safetensors& contents, const std::filesystem::path& file) {
  require<UserError>(contents.integers.empty(), "{}: {} holds integers, which no parameter does",
                     file.string(), contents.integers.empty() ? "" : contents.integers.front());
  Checkpoint checkpoint;
  checkpoint.config = metadata(contents, config_key, file);
  const bool torch =
      metadata(contents, names_key, file) == row_of(export_names, ExportNames::torch).name;
  checkpoint.model = torch ? from_torch_names(contents.tensors) : contents.tensors;
  checkpoint.vocabulary = parse_vocabulary(metadata(contents, vocabulary_key, file), file);
  begin_run(checkpoint, file);
  return checkpoint;
}

}  // namespace qkv
