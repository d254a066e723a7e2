#include "inspect/documents/embed.h"

namespace qkv::documents {

Json vectors(const WordVector& word) {
  return object({{"tokens", word.sentence->words},
                 {"index", word.index < 0 ? Json() : Json(word.index)},
                 {"static", word.static_vector},
                 {"contextual", word.contextual}});
}

Json nearest(const std::vector<NearWord>& words) {
  Json list = Json::array();
  for (const auto& [word, cosine] : words)
    list.push_back(object({{"word", word}, {"cosine", cosine}}));
  return object({{"nearest", list}});
}

}  // namespace qkv::documents
