// Plain text, of files and of users.
#include "datasets/text.h"

#include "datasets/encoded_text.h"
#include "datasets/text_file.h"
#include "tests/fuzz/readers/input.h"
#include "tests/support/read_files.h"

namespace qkv::fuzz {
namespace {

std::string whole(const BlockedText& text) {
  std::string blocks;
  for (Index i = 0; i < text.blocks(); ++i) blocks += text.block(i);
  demand(std::ssize(characters(blocks)) == text.characters());
  return blocks;
}

}  // namespace

void read(std::span<const std::byte> input) {
  const std::string_view text = text_of(input);
  std::string joined;
  for_each_character(text, [&](std::string_view character) {
    demand(!character.empty() && character.size() <= 4);
    joined += character;
  });
  demand(joined == text);

  const auto file = file_of(input);
  std::string lines;
  for (const std::string& line : read_lines(file)) lines += line + '\n';
  demand(is_utf8(lines));
  ReadCallback silent;
  BlockedText blocks(file, silent);
  demand(whole(blocks) == lines);
  const BlockedText end =
      blocks.cut_off(static_cast<Index>(input.size()) / 3 % (blocks.characters() + 1));
  demand(whole(blocks) + whole(end) == lines);
}

}  // namespace qkv::fuzz
