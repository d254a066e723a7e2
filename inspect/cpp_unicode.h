#pragma once

#include <string>

/// The tables of code points that a model exported as C++ reads texts with
/// (inspect/cpp_model/description.h), as UTF-8.
namespace qkv::cpp_export {

/// First and last of the ranges of code points that a property has.
std::string ranges_with(bool (*property)(char32_t code));

/// Composed characters, each with the two that it consists of.
std::string composed_pairs();
/// Characters that are always decomposed, each with two, or one and U+0000.
std::string decomposed_pairs();
/// First and last of the ranges of code points that have a combining class, which is the third.
std::string combining_classes();
/// Characters that have another in lower case, each with that one.
std::string lower_pairs();

}  // namespace qkv::cpp_export
