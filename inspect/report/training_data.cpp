#include "inspect/report/training_data.h"

#include <optional>
#include <utility>
#include <vector>

#include "datasets/text.h"
#include "inspect/report/encode.h"
#include "train/config/option_list.h"
#include "train/storage/durable_file.h"

namespace qkv::report {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = 4'000'000;   // of a file
constexpr std::size_t most_characters = 800'000;  // of all files in the page

/// The text of a data file; none where there is none that the page can hold.
std::optional<std::string> text_of(const fs::path& file) try {
  std::string text = read_file(file, most_bytes);
  if (!is_utf8(text)) return std::nullopt;
  return text;
} catch (const UserError&) {
  return std::nullopt;
}

/// The files that a config names, in its order, after the paths that they have in `shown`.
std::vector<std::pair<std::string, std::string>> paths_of(Config config, Config shown) {
  std::vector<std::pair<std::string, std::string>> result;
  const auto files = options_of(config), names = options_of(shown);
  for (std::size_t i = 0; i < files.size(); ++i)
    if (files[i].path && !files[i].path->empty())
      result.emplace_back(*names[i].path, *files[i].path);
  return result;
}

}  // namespace

Config shown_config(const LoadedRun& run) {
  Config config = portable(run.config(), run.folder);
  for (const Option& option : options_of(config))
    if (option.path && fs::path(*option.path).is_absolute())
      *option.path = fs::path(*option.path).filename();
  return config;
}

Json TrainingData::add(const LoadedRun& run) {
  if (!run.config().train.init.empty()) return nullptr;
  const Config shown = shown_config(run);
  std::map<std::string, std::string> added;
  std::size_t characters = characters_;
  Json paths = Json::array();
  for (const auto& [name, file] : paths_of(run.config(), shown)) {
    auto text = text_of(file);
    if (!text) return nullptr;
    paths.push_back(name);
    const auto found = files_.find(name);
    if (found != files_.end() && found->second != *text) return nullptr;
    if (found != files_.end()) continue;
    characters += encoded_size(*text);
    added[name] = std::move(*text);
  }
  if (characters > most_characters || paths.empty()) return nullptr;
  characters_ = characters;
  files_.merge(added);
  return {{"config", to_toml(shown)}, {"files", paths}};
}

}  // namespace qkv::report
