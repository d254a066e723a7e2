#include <doctest/doctest.h>

#include <iterator>
#include <string>
#include <vector>

#include "core/random.h"
#include "datasets/text.h"
#include "datasets/token_rules.h"
#include "datasets/unicode.h"
#include "datasets/word_pieces.h"
#include "inspect/cpp_model/byte_level.h"
#include "inspect/cpp_model/convolution.h"
#include "inspect/cpp_model/fixed_length.h"
#include "inspect/cpp_model/generate.h"
#include "inspect/cpp_model/learned_tokens.h"
#include "inspect/cpp_model/predict.h"
#include "inspect/cpp_model/recurrent.h"
#include "inspect/cpp_model/static_embedding.h"
#include "inspect/cpp_model/transformer.h"
#include "inspect/cpp_model/word_pieces.h"
#include "inspect/cpp_unicode.h"
#include "inspect/report/encode.h"
#include "train/tasks/generate.h"

/// A model without parameters, which reads texts.
static qkv_model::Description& reading_model() {
  using namespace qkv;
  using namespace qkv::cpp_export;
  static const std::string tables[] = {ranges_with(is_white),
                                       ranges_with(is_mark),
                                       composed_pairs(),
                                       decomposed_pairs(),
                                       combining_classes(),
                                       ranges_with(is_no_word_piece),
                                       ranges_with(is_word_of_its_own),
                                       ranges_with(is_nonspacing),
                                       ranges_with(is_cased),
                                       ranges_with(is_case_ignorable),
                                       lower_pairs(),
                                       ranges_with(is_letter),
                                       ranges_with(is_number),
                                       ranges_with(is_space)};
  static qkv_model::Description model = [] {
    static std::vector<std::string> lines;
    for (const std::string& table : tables) lines.push_back(report::encoded_bytes(table));
    qkv_model::Description d;
    std::vector<std::string_view>* const members[] = {
        &d.white_space, &d.marks, &d.composed,  &d.decomposed, &d.classes, &d.left_out, &d.separate,
        &d.accents,     &d.cased, &d.ignorable, &d.lower,      &d.letters, &d.numbers,  &d.spaces};
    for (std::size_t i = 0; i < std::size(members); ++i) *members[i] = {lines[i]};
    return d;
  }();
  return model;
}

inline const qkv_model::Description& qkv_model::description() {
  return reading_model();
}

namespace qkv::cpp_model_test {
namespace {

/// Texts of random characters of those that are hard to read.
template <class Use>
void for_each_drawn_text(Use use) {
  const std::u32string hard =
      U"abST12.,'-\"! "
      U"\n\u0001\u000B\u00AD\uFFFD\u03A3\u0130\u00C5\u0660\u00BD\u302E\u302F\U0001D16D\U0001D165"
      U"\t\u00A0\u2003\u3000\u200B\uFEFF\u0300\u0301\u0323\u0327\u0338\u0345\u2019\u2010\u00B7"
      U"\u00E9\u212B\u1E69\u0958\uFB2C\u0344\u037E\u2126\u1100\u1161\u11A8\uAC00\uAC01\u09C7\u09BE"
      U"\u0DD9"
      U"\u0DCF\u0DCA\u4E2D\uF900\U0001D15F\U0001F600\u3002\u00BF";
  const Random random(1, Purpose::testing);
  std::uint64_t index = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text;
    const std::uint32_t length = 1 + random.bits(index++) % 90;
    for (std::uint32_t c = 0; c < length; ++c)
      text += utf8(hard[random.bits(index++) % hard.size()]);
    use(text);
  }
}

template <class Tokenizer>
std::vector<std::string> exported_pieces(const std::string& text) {
  std::vector<std::string> pieces;
  qkv_model::for_each_piece<Tokenizer>(Tokenizer::prepared(text),
                                       [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

}  // namespace

TEST_CASE("an exported model composes every character and texts of marks as the program does") {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    const std::string text = utf8(code);
    if (qkv_model::CharacterTokenizer::prepared(text) != composed(text))
      FAIL("U+" << std::hex << std::uint32_t{code});
    if (code > 0) qkv_model::require_utf8(text);
  }
  for_each_drawn_text([](const std::string& text) {
    CHECK(qkv_model::CharacterTokenizer::prepared(text) == composed(text));
  });
}

TEST_CASE("an exported WordPiece reads every character and texts of marks as the program does") {
  for (const bool lower_case : {false, true}) {
    reading_model().lower_case = lower_case;
    const auto prepared = [=](const std::string& text) {
      return word_piece_rules().prepared(text, lower_case);
    };
    for (char32_t code = 0; code <= 0x10FFFF; ++code) {
      if (code >= 0xD800 && code <= 0xDFFF) continue;
      const std::string text = utf8(code);
      if (qkv_model::WordPieceTokenizer::prepared(text) != prepared(text))
        FAIL("U+" << std::hex << std::uint32_t{code});
    }
    for_each_drawn_text([&](const std::string& text) {
      using qkv_model::WordPieceTokenizer;
      CHECK(WordPieceTokenizer::prepared(text) == prepared(text));
      CHECK(exported_pieces<WordPieceTokenizer>(text) ==
            pieces_of(text, {TokenizerKind::word_piece, lower_case}));
      CHECK(WordPieceTokenizer::words_of(text) == word_piece_rules().words_of(text));
    });
  }
  reading_model().lower_case = false;
}

TEST_CASE("an exported model cuts texts as the program does") {
  for_each_drawn_text([](const std::string& text) {
    using namespace qkv_model;
    CHECK(exported_pieces<WordTokenizer>(text) == pieces_of(text, {TokenizerKind::word, false}));
    CHECK(exported_pieces<CharacterTokenizer>(text) ==
          pieces_of(text, {TokenizerKind::character, false}));
    CHECK(exported_pieces<BytePairTokenizer>(text) == pieces_of(text, {TokenizerKind::bpe, false}));
    CHECK(exported_pieces<ByteLevelTokenizer>(text) ==
          pieces_of(text, {TokenizerKind::byte_level, false}));
    CHECK(qkv_model::split(text) == words(text));
  });
}

TEST_CASE("an exported model draws the tokens that the program draws") {
  const Random random(2, Purpose::testing);
  for (std::uint64_t i = 0; i < 500; ++i) {
    std::vector<double> logits;
    for (std::uint64_t j = 0; j < 30; ++j)
      logits.push_back(0.5 * (random.bits(30 * i + j) % 8));  // with ties
    const double temperature = 0.5 * static_cast<double>(i % 4), top_p = i % 3 ? 0.8 : 1.0;
    const std::uint64_t seed = i << 31 | i, draw = i << 33 | i;
    CHECK(qkv_model::drawn(logits, {temperature, i % 5, top_p, seed}, draw) ==
          sample(logits,
                 {.temperature = temperature,
                  .top_k = static_cast<Index>(i % 5),
                  .top_p = top_p,
                  .seed = seed},
                 draw));
  }
}

}  // namespace qkv::cpp_model_test
