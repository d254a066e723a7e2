#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "train/run/run.h"

namespace qkv {

/// Names and contents of the parts of inspect/cpp_model; cmake/embed_files.cmake writes them.
extern const std::span<const std::pair<std::string_view, std::string_view>> cpp_model_files;

/// How a header has the weights.
enum class CppWeights {
  float32,
  int8  ///< those of linear layers and embeddings as int8 with a scale for each row
};

/// The model as a header of C++17 that needs the standard library alone, for the file `file`:
///
///     predict(text)     labels with probabilities, as TrainedModel::predict (classify, word-sense,
///                       tagging)
///     translate(text)   the written text and its probability (translate)
///     generate(prompt, tokens, sampling)   as TrainedModel::generate (language-model)
///
/// All stands in the namespace `cpp_namespace(file)`. The header holds the parts of
/// inspect/cpp_model that the model needs, its description, and the weights; it computes in
/// float64. Throws UserError for tasks that have no such part.
std::string cpp_header(const SavedModel& model, const std::filesystem::path& file,
                       CppWeights format = CppWeights::float32);

/// "qkv_" and the file's name without its extension, each run of characters that no name has as one
/// underscore: qkv_bank_2 for "bank-2.h".
std::string cpp_namespace(const std::filesystem::path& file);

/// Whether a file begins as one that `cpp_header` gave.
bool begins_as_cpp_export(std::string_view beginning);

}  // namespace qkv
