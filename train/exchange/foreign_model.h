#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/config.h"
#include "train/exchange/foreign_files.h"
#include "train/storage/checkpoint.h"

/// A model from somebody else's folder, as train/exchange/huggingface.cpp puts it together.
namespace qkv {

/// The class of transformers that the model belongs to.
enum class Architecture { bert, masked, pretraining, classifier, gpt2, gpt2_head };

struct Import {
  std::filesystem::path folder;
  JsonOptions options;  ///< of config.json
  Architecture architecture;
  Config config = {};
  Checkpoint checkpoint = {};
  std::string_view model_class = {};           ///< that transformers reads it with
  std::vector<std::string> added_tokens = {};  ///< to the tokenizer's own

  Tensor& parameter(const std::string& path) { return checkpoint.model[path]; }
};

/// Both give the model its options, vocabulary and parameters, and return the names of the tensors
/// that it has no place for. They throw as `read_huggingface`.
std::vector<std::string> read_bert(Import& import);
std::vector<std::string> read_gpt2(Import& import);

/// The file of the weights. Throws UserError with the command that writes it where the folder has
/// another kind of file.
std::filesystem::path weights_file(const Import& import);
/// The file `name` of the tokenizer. Throws UserError with the command that writes it where the
/// folder has a tokenizer.json alone.
std::filesystem::path tokenizer_file(const Import& import, std::string_view name);

/// Adds the added tokens to those of a tokenizer's `file`, and names for the rows
/// of `table` that have no token. Throws UserError when there are more tokens than rows, or
/// config.json has another number.
void complete_vocabulary(Import& import, const TensorSource& source, const std::string& table,
                         const std::filesystem::path& file, std::vector<std::string>& tokens);
/// Throws UserError unless `tokenizer_class`, in any of the folder's files that may have it, is
/// `name` or `name`Fast.
void require_tokenizer(const Import& import, std::string_view name, std::string_view cuts);

/// The activation that an option names, `usual` where it is left out.
ActivationKind activation_of(const JsonOptions& options, const std::string& key,
                             ActivationKind usual);
/// The one dropout probability of a model. Throws UserError when `others` have another.
double dropout_of(const JsonOptions& options, const std::string& key,
                  std::initializer_list<std::string> others);

/// Throws UserError unless the epsilon of norms is that of the kind of model.
void require_epsilon(const JsonOptions& options, const std::string& key, ModelKind kind);

/// Takes weight and bias called `name` as the parameters of the linear layer or norm at `path`.
/// `shape`: that of the weight.
void take_layer(Import& import, TensorSource& source, const std::string& path,
                const std::string& name, const Shape& shape);

}  // namespace qkv
