#include "datasets/word_pieces.h"

#include <algorithm>

#include "core/error.h"
#include "datasets/text.h"
#include "datasets/unicode.h"

namespace qkv {
namespace {

constexpr Index longest_word = 100;  // in characters; longer ones are unknown

bool is_word_of_its_own(char32_t code) {
  return is_punctuation(code) || is_ideograph(code);
}

bool is_left_out(std::string_view character) {
  constexpr char32_t replacement = 0xFFFD;
  const auto [length, code] = first_code_point(character);
  if (length == 0 || code == replacement) return true;
  return is_control(code) && code != '\t' && code != '\n' && code != '\r';
}

}  // namespace

std::string without_controls(std::string_view text, bool lower_case) {
  std::string kept;
  for_each_character(text, [&](std::string_view character) {
    if (!is_left_out(character)) kept += character;
  });
  return lower_case ? lower_without_accents(kept) : kept;
}

std::size_t basic_word_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const std::string_view character = first_character(text.substr(length));
    const char32_t code = first_code_point(character).code;
    if (is_word_of_its_own(code)) return length == 0 ? character.size() : length;
    if (is_space(code)) break;
    length += character.size();
  }
  return length;
}

void encode_word_pieces(std::string_view word, const Vocabulary& vocabulary,
                        std::vector<std::int32_t>& ids) {
  const std::size_t before = ids.size();
  std::vector<std::size_t> ends;  // of the characters
  for_each_character(word, [&](std::string_view character) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + character.size());
  });
  std::size_t begin = 0, used = 0;  // bytes and characters
  const auto id_up_to = [&](std::size_t end) {
    const std::string_view text = word.substr(begin, end - begin);
    return vocabulary.id(begin == 0 ? std::string(text)
                                    : std::string(word_piece_prefix) + std::string(text));
  };
  while (used < ends.size() && std::ssize(ends) <= longest_word) {
    std::size_t next = ends.size();
    while (next > used && vocabulary.is_unknown(id_up_to(ends[next - 1]))) --next;
    if (next == used) break;
    ids.push_back(id_up_to(ends[next - 1]));
    begin = ends[next - 1];
    used = next;
  }
  if (used == ends.size()) return;
  ids.resize(before);
  ids.push_back(Vocabulary::unknown);
}

void require_word_pieces(const Vocabulary& vocabulary) {
  for (const std::string_view token : {first_word_piece, last_word_piece})
    require<FileError>(!vocabulary.is_unknown(vocabulary.id(token)),
                       "the vocabulary has no {}, with which task.tokenizer \"wordpiece\" begins "
                       "or ends a sentence",
                       token);
}

}  // namespace qkv
