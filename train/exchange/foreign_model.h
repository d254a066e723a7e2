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

/// What the model was made for.
enum class Architecture { bert, masked, pretraining, classifier, gpt2, gpt2_head };

struct Import {
  std::filesystem::path folder;
  JsonOptions options;  ///< of config.json
  Architecture architecture;
  Config config = {};
  Checkpoint checkpoint = {};

  Tensor& parameter(const std::string& path) { return checkpoint.model[path]; }
};

/// Both give the model its options, vocabulary and parameters, and return the names of the tensors
/// that it has no place for. They throw as `read_huggingface`.
std::vector<std::string> read_bert(Import& import);
std::vector<std::string> read_gpt2(Import& import);

/// The activation that an option names, `usual` where it is left out.
ActivationKind activation_of(const JsonOptions& options, const std::string& key,
                             ActivationKind usual);
/// The one dropout probability of a model. Throws UserError when `others` have another.
double dropout_of(const JsonOptions& options, const std::string& key,
                  std::initializer_list<std::string> others);

/// Take weight and bias called `name` as the parameters of the layer at `path`.
void take_linear(Import& import, TensorSource& source, const std::string& path,
                 const std::string& name, const Shape& shape);
void take_norm(Import& import, TensorSource& source, const std::string& path,
               const std::string& name);

}  // namespace qkv
