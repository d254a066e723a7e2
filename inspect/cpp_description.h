#pragma once

#include <string>
#include <string_view>

#include "datasets/tokenizer.h"
#include "inspect/cpp_export.h"
#include "train/run/run.h"

/// The function `description` of a model exported as C++ (inspect/cpp_model/description.h).
namespace qkv::cpp_export {

/// A text as a string literal. What is not printable ASCII is octal, and no two question marks
/// begin a trigraph.
std::string escaped(std::string_view text);

/// Whether texts are composed or decomposed before they are cut.
bool normalizes(const Cutting& cutting);

/// The definition of `description`: options, vocabularies, tables of code points and weights.
std::string description_of(const LoadedModel& model, CppWeights format);

}  // namespace qkv::cpp_export
