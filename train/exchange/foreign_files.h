#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"

/// The files in which other programs keep a model. Each value is checked when it is asked for.
namespace qkv {

/// The tokens of a `vocab.txt` in the order of its lines. Throws UserError naming file and line
/// when a line is empty, not UTF-8 or occurs twice, FileError when the file cannot be read.
std::vector<std::string> read_vocab_txt(const std::filesystem::path& file);
/// The tokens of a `vocab.json`, {TOKEN: ID, ...}, in the order of their ids, which must be all
/// from 0 on. Throws UserError.
std::vector<std::string> read_vocab_json(const std::filesystem::path& file);
/// Adds the tokens of `added_tokens.json`, {TOKEN: ID, ...}, and of `added_tokens_decoder` in
/// `tokenizer_config.json` to `tokens`, with a name for each id between them that has no token, and
/// returns them; none where the folder has no such file. Throws UserError when an id is that of
/// another token or above `highest`.
std::vector<std::string> take_added_tokens(std::vector<std::string>& tokens,
                                           const std::filesystem::path& folder, Index highest);
/// Gives `tokens` names for further rows of a table, up to `rows`. They hold spaces, so that no
/// text has them.
void name_further_rows(std::vector<std::string>& tokens, Index rows);
/// The lines of a `merges.txt` but for a first one that begins with "#version". Throws UserError
/// naming file and line, also for a merge that does not fit `tokens` or the merges before it
/// (`ByteMerges`).
std::vector<std::string> read_merges(const std::filesystem::path& file,
                                     const std::vector<std::string>& tokens);

/// The options in a JSON file. All throw UserError naming the file, the option and what it may be.
class JsonOptions {
 public:
  explicit JsonOptions(std::filesystem::path file);
  /// No options where there is no such file.
  static JsonOptions if_there(const std::filesystem::path& file);

  /// Null where it is left out.
  const nlohmann::json& find(const std::string& key) const;
  Index integer(const std::string& key, Index low, Index high,
                std::optional<Index> usual = {}) const;
  double number(const std::string& key, double low, double below, double usual) const;
  bool flag(const std::string& key, bool usual) const;
  /// Throws unless a flag has the one value that is supported.
  void require_flag(const std::string& key, bool supported) const;
  /// The place of one of some names, 0 where it is left out.
  std::size_t choice(const std::string& key, std::span<const std::string_view> names) const;
  void demand(bool holds, const std::string& key, const std::string& what) const;

 private:
  JsonOptions(std::filesystem::path file, nlohmann::json json)
      : file_(std::move(file)), json_(std::move(json)) {}

  std::filesystem::path file_;
  nlohmann::json json_;
};

/// The tensors of a safetensors file by name, each of which is taken once.
class TensorSource {
 public:
  /// `prefix` begins names where the model has an output layer.
  TensorSource(std::filesystem::path file, std::string_view prefix);

  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// The number of rows of a table. Throws UserError when there is none.
  Index rows(const std::string& name) const;
  /// In float32. Throws UserError when there is none or it has another shape.
  Tensor take(const std::string& name, const Shape& shape);
  /// Takes another copy of what was taken. Throws UserError unless it is equal.
  void take_copy(const std::string& name, const Tensor& of);
  /// The names that are left. Throws UserError for one that `may_be` does not expect.
  std::vector<std::string> left(bool (*may_be)(std::string_view)) const;

 private:
  std::filesystem::path file_;
  std::map<std::string, Tensor> tensors_;
  std::vector<std::string> integers_;
};

}  // namespace qkv
