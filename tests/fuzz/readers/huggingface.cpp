// Files of Hugging Face's folders; the parts of an input are config.json, vocab.txt, vocab.json and
// merges.txt. There are no parameters, so that no folder is accepted as a whole.
#include "train/exchange/huggingface.h"
#include "train/exchange/foreign_files.h"

#include "datasets/tokenizer.h"
#include "tests/fuzz/readers/input.h"

namespace {

template <class Read>
void attempt(Read read) {
  try {
    read();
  } catch (const qkv::Error&) {
    // The other files may do.
  }
}

}  // namespace

void qkv::fuzz::read(std::span<const std::byte> input) {
  constexpr const char* names[] = {"config.json", "vocab.txt", "vocab.json", "merges.txt"};
  const auto parts = parts_of(input, std::size(names));
  std::filesystem::path folder;
  for (std::size_t i = 0; i < parts.size(); ++i) folder = file_of(parts[i], names[i]).parent_path();
  attempt([&] { read_huggingface(folder); });
  attempt([&] {
    const Tokenizer tokenizer({TokenizerKind::word_piece, true}, read_vocab_txt(folder / names[1]));
    std::vector<std::int32_t> ids;
    tokenizer.encode(text_of(parts[0]), ids);
  });
  const auto tokens = read_vocab_json(folder / names[2]);
  const Tokenizer tokenizer({TokenizerKind::byte_level, false}, tokens,
                            read_merges(folder / names[3], tokens));
  std::vector<std::int32_t> ids;
  tokenizer.encode(text_of(parts[0]), ids);
  demand(tokenizer.decode(ids) == text_of(parts[0]));
}
