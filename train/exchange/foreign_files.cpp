#include "train/exchange/foreign_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "datasets/byte_level.h"
#include "datasets/text.h"
#include "train/storage/durable_file.h"
#include "train/storage/safetensors.h"
#include "train/storage/strict_json.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<std::string>;

constexpr std::uint64_t longest_config = std::uint64_t{1} << 20,
                        longest_vocabulary = std::uint64_t{1} << 26;

std::string text_of(const fs::path& file, std::uint64_t longest) {
  std::string text = read_file(file, longest);
  require<UserError>(is_utf8(text), "{}: is not UTF-8", file.string());
  return text;
}

nlohmann::json json_of(const fs::path& file, std::uint64_t longest) {
  constexpr int deepest = 16;
  const std::string text = text_of(file, longest);
  try {
    return strict_json(text, deepest);
  } catch (const FileError& error) {
    throw UserError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

/// Calls `use` with each line of a file and its number from 1, without its end.
void for_each_line(const fs::path& file,
                   const std::function<void(std::string_view, std::size_t)>& use) {
  const std::string text = text_of(file, longest_vocabulary);
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    use(line, ++number);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

std::string shown(const nlohmann::json& value) {
  constexpr std::size_t most = 80;
  const std::string text = value.dump(-1, ' ', true);
  return value.is_null() ? "none" : text.size() > most ? text.substr(0, most) + "..." : text;
}

void require_token(const fs::path& file, std::string_view token) {
  require<UserError>(!token.empty() && token.find('\0') == token.npos,
                     "{}: a token is empty or has a zero byte", file.string());
}

void require_few(const fs::path& file, std::size_t tokens) {
  constexpr std::size_t most = std::size_t{1} << 22;
  require<UserError>(tokens <= most, "{}: has {} tokens, more than {}", file.string(), tokens,
                     most);
}

struct AddedToken {
  fs::path file;
  std::string token;
  std::uint64_t id;
};

/// The tokens that were added to a vocabulary, from both files that may name them.
std::vector<AddedToken> added_tokens_of(const fs::path& folder) {
  std::vector<AddedToken> found;
  const fs::path list = folder / "added_tokens.json", config = folder / "tokenizer_config.json";
  const auto demand = [](bool holds, const fs::path& file) {
    require<UserError>(holds, "{}: must give each added token an id", file.string());
  };
  const auto json = [](const fs::path& file) {
    return fs::exists(file) ? json_of(file, longest_vocabulary) : nlohmann::json::object();
  };
  const nlohmann::json ids = json(list), decoder = json(config).value("added_tokens_decoder",
                                                                      nlohmann::json::object());
  for (const auto& [token, id] : ids.items()) {
    demand(id.is_number_unsigned(), list);
    found.push_back({list, token, id.get<std::uint64_t>()});
  }
  for (const auto& [id, token] : decoder.items()) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    demand(error == std::errc() && end == id.data() + id.size() && token.is_object() &&
               token.contains("content") && token["content"].is_string(),
           config);
    found.push_back({config, token["content"].get<std::string>(), number});
  }
  return found;
}

/// A name without `prefix`, and as it is now called where the file was converted from TensorFlow.
std::string plain_name(std::string_view name, std::string_view prefix) {
  std::string plain(name.starts_with(prefix) ? name.substr(prefix.size()) : name);
  for (const auto& [old_end, end] : {std::pair(".gamma", ".weight"), std::pair(".beta", ".bias")})
    if (plain.ends_with(old_end))
      plain.replace(plain.size() - std::string_view(old_end).size(), plain.npos, end);
  return plain;
}

}  // namespace

Tokens take_added_tokens(Tokens& tokens, const fs::path& folder, Index highest) {
  std::map<std::size_t, std::string> added;
  for (const auto& [file, token, id] : added_tokens_of(folder)) {
    require_token(file, token);
    require<UserError>(id <= static_cast<std::uint64_t>(highest),
                       "{}: the id of \"{}\" must be from 0 to {}, the last row of the table of "
                       "embeddings, got {}",
                       file.string(), token, highest, id);
    std::string& other = id < tokens.size() ? tokens[id] : added[id];
    require<UserError>(other.empty() || other == token, "{}: \"{}\" and \"{}\" have the same id",
                       file.string(), other, token);
    other = token;
  }
  Tokens names;
  for (const auto& [id, token] : added) {
    name_further_rows(tokens, static_cast<Index>(id));
    tokens.push_back(token);
    names.push_back(token);
  }
  return names;
}

void name_further_rows(Tokens& tokens, Index rows) {
  while (std::ssize(tokens) < rows) tokens.push_back(fmt::format("[no token {}]", tokens.size()));
}

Tokens read_vocab_txt(const fs::path& file) {
  Tokens tokens;
  std::set<std::string> known;
  for_each_line(file, [&](std::string_view line, std::size_t number) {
    require<UserError>(!line.empty() && line.find('\0') == line.npos,
                       "{}:{}: must be a token, got {}", file.string(), number,
                       line.empty() ? "an empty line" : "a zero byte");
    require<UserError>(known.emplace(line).second, "{}:{}: \"{}\" occurs twice", file.string(),
                       number, line);
    tokens.emplace_back(line);
  });
  require_few(file, tokens.size());
  return tokens;
}

Tokens read_vocab_json(const fs::path& file) {
  const nlohmann::json json = json_of(file, longest_vocabulary);
  require_few(file, json.size());
  Tokens tokens(json.size());
  for (const auto& [token, id] : json.items()) {
    require_token(file, token);
    require<UserError>(id.is_number_unsigned() && id.get<std::uint64_t>() < tokens.size(),
                       "{}: the id of \"{}\" must be from 0 to {}, since there are {} tokens",
                       file.string(), token, std::ssize(tokens) - 1, tokens.size());
    std::string& place = tokens[id.get<std::size_t>()];
    require<UserError>(place.empty(), "{}: \"{}\" and \"{}\" have the same id", file.string(),
                       place, token);
    place = token;
  }
  return tokens;
}

Tokens read_merges(const fs::path& file, const Tokens& tokens) {
  Tokens merges;
  std::vector<std::size_t> lines;
  for_each_line(file, [&](std::string_view line, std::size_t number) {
    if ((number == 1 && line.starts_with("#version")) || line.empty()) return;
    const auto space = line.find(' ');
    const bool two = space != line.npos && space > 0 && space + 1 < line.size() &&
                     line.find(' ', space + 1) == line.npos && line.find('\0') == line.npos;
    require<UserError>(two, "{}:{}: must be two tokens with a space between them", file.string(),
                       number);
    merges.emplace_back(line);
    lines.push_back(number);
  });
  require<UserError>(!merges.empty(), "{}: has no merges", file.string());
  try {
    const ByteMerges checked(merges, Vocabulary(tokens, ReservedIds::none));
  } catch (const MergeError& error) {
    throw UserError(fmt::format("{}:{}: {}", file.string(), lines[error.merge()], error.what()));
  } catch (const FileError& error) {
    throw UserError(fmt::format("{}: {}", file.string(), error.what()));
  }
  return merges;
}

JsonOptions::JsonOptions(fs::path file)
    : file_(std::move(file)), json_(json_of(file_, longest_config)) {}

JsonOptions JsonOptions::if_there(const fs::path& file) {
  return fs::exists(file) ? JsonOptions(file) : JsonOptions(file, nlohmann::json::object());
}

const nlohmann::json& JsonOptions::find(const std::string& key) const {
  static const nlohmann::json null;
  const auto found = json_.find(key);
  return found == json_.end() ? null : *found;
}

Index JsonOptions::integer(const std::string& key, Index low, Index high,
                           std::optional<Index> usual) const {
  const nlohmann::json& value = find(key);
  if (value.is_null() && usual) return *usual;
  const bool fits = value.is_number_unsigned() &&
                    value.get<std::uint64_t>() <= static_cast<std::uint64_t>(high) &&
                    value.get<Index>() >= low;
  demand(fits, key, fmt::format("must be an integer from {} to {}", low, high));
  return value.get<Index>();
}

double JsonOptions::number(const std::string& key, double low, double below, double usual) const {
  const nlohmann::json& value = find(key);
  if (value.is_null()) return usual;
  demand(value.is_number() && value.get<double>() >= low && value.get<double>() < below, key,
         fmt::format("must be a number from {} to below {}", low, below));
  return value.get<double>();
}

bool JsonOptions::flag(const std::string& key, bool usual) const {
  const nlohmann::json& value = find(key);
  demand(value.is_null() || value.is_boolean(), key, "must be true or false");
  return value.is_null() ? usual : value.get<bool>();
}

void JsonOptions::require_flag(const std::string& key, bool supported) const {
  demand(flag(key, supported) == supported, key, fmt::format("must be {} here", supported));
}

std::size_t JsonOptions::choice(const std::string& key,
                                std::span<const std::string_view> names) const {
  const nlohmann::json& value = find(key);
  if (value.is_null()) return 0;
  const auto found = value.is_string()
                         ? std::ranges::find(names, value.get_ref<const std::string&>())
                         : names.end();
  demand(found != names.end(), key, fmt::format("must be one of {}", fmt::join(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

void JsonOptions::demand(bool holds, const std::string& key, const std::string& what) const {
  require<UserError>(holds, "{}: {} {}, got {}", file_.string(), key, what, shown(find(key)));
}

TensorSource::TensorSource(fs::path file, std::string_view prefix) : file_(std::move(file)) {
  Safetensors contents = read_safetensors(file_);
  integers_ = std::move(contents.integers);
  for (auto& [name, tensor] : contents.tensors) {
    const std::string plain = plain_name(name, prefix);
    require<UserError>(tensors_.emplace(plain, tensor).second, "{}: has {} under two names",
                       file_.string(), plain);
  }
  for (std::string& name : integers_) name = plain_name(name, prefix);
}

Index TensorSource::rows(const std::string& name) const {
  const auto found = tensors_.find(name);
  require<UserError>(found != tensors_.end() && found->second.rank() > 0, "{}: has no table {}",
                     file_.string(), name);
  return found->second.dim(0);
}

Tensor TensorSource::take(const std::string& name, const Shape& shape) {
  const auto found = tensors_.extract(name);
  require<UserError>(!found.empty(), "{}: has no tensor {} {}, which config.json describes",
                     file_.string(), name, shape);
  require<UserError>(found.mapped().shape() == shape,
                     "{}: {} has the shape {}; config.json describes {}", file_.string(), name,
                     found.mapped().shape(), shape);
  return found.mapped().to(DType::float32);
}

void TensorSource::take_copy(const std::string& name, const Tensor& of) {
  if (!has(name)) return;
  require<UserError>(take(name, of.shape()).values() == of.values(),
                     "{}: {} differs from the weights that it is tied to; such a model is not "
                     "supported",
                     file_.string(), name);
}

Tokens TensorSource::left(bool (*may_be)(std::string_view)) const {
  Tokens names = integers_;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  for (const std::string& name : names)
    require<UserError>(may_be(name), "{}: {} is no tensor of this architecture", file_.string(),
                       name);
  return names;
}

}  // namespace qkv
