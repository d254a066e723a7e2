#pragma once

#include "inspect/documents/json.h"
#include "inspect/word_vectors.h"

namespace qkv::documents {

/// An element of "sentences": {"tokens", "index", "static", "contextual"}; "index" is null for the
/// mean of all words.
Json vectors(const WordVector& word);

/// {"nearest": [{"word", "cosine"}]}
Json nearest(const std::vector<NearWord>& words);

}  // namespace qkv::documents
