// Plain text, of files and of users.
#include "datasets/text.h"

#include "datasets/text_file.h"
#include "tests/fuzz/readers/input.h"

void qkv::fuzz::read(std::span<const std::byte> input) {
  const std::string_view text = text_of(input);
  std::string joined;
  for_each_character(text, [&](std::string_view character) {
    demand(!character.empty() && character.size() <= 4);
    joined += character;
  });
  demand(joined == text);
  const TokenizedWords sentence = tokenized_words(text);
  demand(sentence.tokens == tokenized(text) && sentence.positions.size() == words(text).size());
  for (const std::int64_t position : sentence.positions)
    demand(position >= 0 && position < std::ssize(sentence.tokens));
  const std::size_t longest = longest_token(text);
  for (const std::string& token : sentence.tokens) demand(token.size() <= longest);
  demand(is_utf8(read_text(file_of(input))));
}
