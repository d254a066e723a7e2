#include "datasets/token_rules.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/error.h"
#include "core/random.h"
#include "datasets/corpus.h"
#include "datasets/text.h"
#include "datasets/unicode.h"
#include "tests/support/errors.h"

using namespace qkv;

using Words = std::vector<std::string>;
using Ids = std::vector<std::int32_t>;

namespace {

constexpr Cutting byte_pairs = {TokenizerKind::bpe, false},
                  as_characters = {TokenizerKind::character, false};

Tokenizer learned(std::string_view text, const Cutting& cutting, Index merges = 100) {
  return Tokenizer::learn(text, cutting, {.merges = merges});
}

Ids encoded(const Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text);
}

Words tokens(const Tokenizer& tokenizer, std::string_view text) {
  Words result;
  for (const auto id : encoded(tokenizer, text)) result.push_back(tokenizer.vocabulary().token(id));
  return result;
}

/// A text of drawn code points of every length in bytes, without surrogates.
std::string drawn_text(const Random& random) {
  std::string text;
  const auto length = random.bits(0) % 40;
  for (std::uint32_t i = 1; i <= length; ++i) {
    constexpr std::uint32_t limits[] = {0x80, 0x800, 0xD800, 0x110000};
    std::uint32_t code = random.bits(2 * i) % limits[random.bits(2 * i + 1) % 4];
    if (code >= 0xD800 && code < 0xE000) code = ' ';
    text += utf8(code);
  }
  return text;
}

std::string drawn_bytes(const Random& random) {
  std::string bytes;
  const auto length = random.bits(0) % 60;
  for (std::uint32_t i = 1; i <= length; ++i) bytes += static_cast<char>(random.bits(i));
  return bytes;
}

}  // namespace

TEST_CASE("typed text loses its capitals and its marks become words") {
  CHECK(cut_sentence("The Bank's \"well-known\" (old) vault, closed!", {}).pieces ==
        Words{"the", "bank's", "\"", "well-known", "\"", "(", "old", ")", "vault", ",", "closed",
              "!"});
  CHECK(cut_sentence("केक का टुकड़ा", {}).pieces == Words{"केक", "का", "टुकड़ा"});
  CHECK(cut_sentence("The Bank", {TokenizerKind::word, false}).pieces == Words{"The", "Bank"});
}

TEST_CASE("a capital sigma becomes the small one of the end of a word where it ends one") {
  const std::pair<std::string_view, std::string_view> cases[] = {{"ΟΔΟΣ", "οδος"},
                                                                 {"ΟΔΟΣ, ΣΑΣ.", "οδος, σας."},
                                                                 {"Σ", "σ"},
                                                                 {"1Σ", "1σ"},
                                                                 {"ΑΣ'Α", "ασ'α"},
                                                                 {"ΑΣ'", "ας'"},
                                                                 {"ΑΣ\u0301", "ας"},
                                                                 {"ΑΣΣ", "ασς"},
                                                                 {"\u2167Σ", "\u2177ς"}};
  for (const auto& [text, lower] : cases) CHECK(lower_without_accents(text) == lower);
}

TEST_CASE("white space is that of Unicode, and so are the marks that are words") {
  const std::string text =
      "the\u00A0old\u2028\u201Cbank\u201D\u3000of\u200Bours\uFEFF \u00ABnow\u00BB\u2026a\u2014b";
  const auto cut = cut_sentence(text, {});
  CHECK(cut.pieces == Words{"the", "old", "\u201C", "bank", "\u201D", "of", "ours", "\u00AB", "now",
                            "\u00BB", "\u2026", "a", "\u2014", "b"});
  CHECK(cut.positions == std::vector<Index>{0, 1, 3, 5, 6, 8});
  CHECK(pieces_of(text, {}) == cut.pieces);
  CHECK(pieces_of("a\u00A0\u201Cb\u201D", byte_pairs) ==
        Words{"a", "\u00A0", "\u201C", "b", "\u201D"});
  CHECK(pieces_of("a \u201Cb", byte_pairs) == Words{"a", " \u201C", "b"});
}

TEST_CASE("an apostrophe or hyphen between letters belongs to the word, curly ones as plain") {
  CHECK(pieces_of("don\u2019t co\u2011op col\u00B7lega \u2018quoted\u2019 dogs\u2019", {}) ==
        Words{"don't", "co\u2011op", "col\u00B7lega", "\u2018", "quoted", "\u2019", "dogs",
              "\u2019"});
  CHECK(pieces_of("The Bank\u2019s", {}) == pieces_of("The Bank's", {}));
  CHECK(pieces_of("\u2019tis \u2019\u2019 a\u2019\u2019b 1\u20192", {}) ==
        Words{"\u2019", "tis", "\u2019", "\u2019", "a", "\u2019", "\u2019", "b", "1'2"});
  CHECK(pieces_of("don\u2019t", byte_pairs) == Words{"don\u2019t"});
}

TEST_CASE("a letter and its accent are one character to every tokenizer that is learned") {
  for (const auto& row : tokenizer_kinds) {
    if (is_imported(row.value)) continue;
    CAPTURE(row.name);
    CHECK(pieces_of("cafe\u0301", {row.value, true}) == pieces_of("caf\u00E9", {row.value, true}));
  }
  CHECK(pieces_of("\xFF"
                  "e\u0301",
                  {}) == Words{"\xFF"
                               "e\u0301"});  // not UTF-8
}

TEST_CASE("a sentence of given words keeps a word with a space together") {
  const Words words = {"Paid", "10 000", "francs"};
  const auto cut = cut_sentence(words, {});
  CHECK(cut.pieces == Words{"paid", "10", "000", "francs"});
  CHECK(cut.positions == std::vector<Index>{0, 1, 3});
  const Words with_nothing = {"the", "\u00AD", "bank"};
  const auto pieces = cut_sentence(with_nothing, {TokenizerKind::word_piece, true});
  CHECK(pieces.positions == std::vector<Index>{1, -1, 2});  // behind [CLS]
}

TEST_CASE("n-grams of words are pieces behind the words, and no part of a decoded text") {
  const Cutting cutting{.ngrams = 3};
  const Words pieces = {"not", "so", "good", "not so", "so good", "not so good"};
  CHECK(pieces_of("Not so good", cutting) == pieces);
  const auto cut = cut_sentence("Not so good", cutting);
  CHECK(cut.pieces == pieces);
  CHECK(cut.positions == std::vector<Index>{0, 1, 2});
  CHECK(pieces_of("good", cutting) == Words{"good"});
  CHECK(cut_sentence("", cutting).pieces.empty());
  CHECK(cut_phrase("Not so", cutting).pieces == Words{"not", "so"});

  const Tokenizer tokenizer = Tokenizer::learn("not so good", cutting);
  const auto ids = tokenizer.encode("not good");
  CHECK(tokenizer.vocabulary().tokens(ids) == Words{"not", "good", "<unk>"});
  CHECK(tokenizer.decode(tokenizer.encode("so good")) == "so good");
  CHECK(tokenizer.is_ngram("so good"));
  CHECK_FALSE(tokenizer.is_ngram("so"));
}

TEST_CASE("every kind cuts a sentence and finds its words") {
  const auto cut = cut_sentence(" (Ab)  c", {TokenizerKind::word, true});
  CHECK(cut.pieces == Words{"(", "ab", ")", "c"});
  CHECK(cut.positions == std::vector<Index>{1, 3});
  const auto letters = cut_sentence(" (Ab)  c", as_characters);
  CHECK(letters.pieces == Words{"(", "A", "b", ")", " ", "c"});
  CHECK(letters.positions == std::vector<Index>{1, 5});
  const auto pairs = cut_sentence(" (Ab)  c", byte_pairs);
  CHECK(pairs.pieces == Words{" (", "Ab", ")", " c"});
  CHECK(pairs.positions == std::vector<Index>{1, 3});
}

TEST_CASE("a word of which wordpiece leaves nothing has no position, and cannot be asked about") {
  const Cutting pieces = {TokenizerKind::word_piece, true};
  const auto cut = cut_sentence("the \u00AD bank", pieces);
  CHECK(cut.pieces == Words{"[CLS]", "the", "bank", "[SEP]"});
  CHECK(cut.positions == std::vector<Index>{1, -1, 2});
  CHECK(error_of<UserError>([&] { tsv_row("a\t1\tx").position(1, cut); }) ==
        "word 1 has no character that the tokenizer reads");
}

TEST_CASE("merges are learned in the order of their frequency, as by hand") {
  // "low" 3 times and "lot" twice: l o occurs 5 times, then lo w 3 times, then lo t twice.
  const auto names = byte_pair_tokens({{"low", 3}, {"lot", 2}}, 1, 100);
  REQUIRE(names.size() == 2 + 256 + 4 + 3);
  CHECK(names[2] == "<0x00>");
  CHECK(names[257] == "<0xFF>");
  CHECK(Words(names.begin() + 258, names.end()) == Words{"l", "o", "w", "t", "lo", "low", "lot"});
  CHECK(byte_pair_tokens({{"low", 3}, {"lot", 2}}, 1, 1).back() == "lo");
  CHECK(byte_pair_tokens({{"low", 3}, {"lot", 2}}, 3, 100).back() == "low");  // "t" is too rare
  CHECK(byte_pair_tokens({{"ab", 1}}, 1, 100).back() == "b");  // nothing occurs twice
}

TEST_CASE("a word is encoded by the earliest merges first, an unknown character by its bytes") {
  const Tokenizer tokenizer = learned("low low low lot lot", byte_pairs);
  CHECK(tokens(tokenizer, "low") == Words{"lo", "w"});
  CHECK(tokens(tokenizer, " lower") == Words{" low", "<0x65>", "<0x72>"});
  CHECK(tokens(tokenizer, "lé") == Words{"l", "<0xC3>", "<0xA9>"});
}

TEST_CASE("text that spells a token of bytes or padding is text") {
  const std::string text = "<0x41><0x41> <0x41> <pad> <pad> <unk> <unk> <0x41>";
  const Tokenizer tokenizer = learned(text, byte_pairs);
  CHECK(tokenizer.decode(encoded(tokenizer, text)) == text);
  CHECK(std::ranges::none_of(encoded(tokenizer, text), [](auto id) { return id < 258; }));
}

TEST_CASE("byte pairs encode and decode every code point") {
  const Tokenizer tokenizer =
      learned("the bank, the river: der Fluß, नदी, 川 and 川\n", byte_pairs);
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    const std::string text = utf8(code);
    REQUIRE(is_utf8(text));
    const Ids ids = encoded(tokenizer, text);
    CAPTURE(static_cast<std::uint32_t>(code));
    REQUIRE(std::ranges::find(ids, Vocabulary::unknown) == ids.end());
    REQUIRE(tokenizer.decode(ids) == composed(text));
  }
}

TEST_CASE("byte pairs encode and decode drawn texts and any bytes") {
  const Tokenizer tokenizer =
      learned("the bank, the river: der Fluß, नदी, 川 and 川\n", byte_pairs);
  Random random(1, Purpose::testing);
  for (int i = 0; i < 2000; ++i)
    for (const std::string& text : {drawn_text(random.next()), drawn_bytes(random.next())}) {
      const Ids ids = encoded(tokenizer, text);
      REQUIRE(std::ranges::find(ids, Vocabulary::unknown) == ids.end());
      REQUIRE(tokenizer.decode(ids) == composed(text));
    }
  const std::string long_word(10'000, 'x');
  CHECK(tokenizer.decode(encoded(tokenizer, long_word)) == long_word);
}

TEST_CASE("characters encode and decode every text of known ones") {
  const std::string text = "Ab é नदी \U0001F3E6\n";
  const Tokenizer tokenizer = learned(text, as_characters);
  CHECK(tokenizer.decode(encoded(tokenizer, text)) == text);
  CHECK(encoded(tokenizer, "?\U0010FFFF") == Ids{Vocabulary::unknown, Vocabulary::unknown});
}

TEST_CASE("words decode to words between spaces") {
  const Tokenizer tokenizer = learned("The bank, open", {});
  CHECK(tokenizer.decode(encoded(tokenizer, "the Bank,  shut")) == "the bank , <unk>");
}

TEST_CASE("a tokenizer made of its own vocabulary encodes alike") {
  for (const auto& row : tokenizer_kinds) {
    if (is_imported(row.value)) continue;  // their tokens are not learned
    CAPTURE(row.name);
    const Tokenizer tokenizer = learned("low low lower é lot lot", {row.value, true});
    const Tokenizer again({row.value, true}, tokenizer.vocabulary().tokens());
    CHECK(encoded(again, "a lower é Lot") == encoded(tokenizer, "a lower é Lot"));
  }
}

TEST_CASE("a vocabulary without bytes is no vocabulary of byte pairs") {
  CHECK(error_of<FileError>([] {
          Tokenizer(byte_pairs, {"<pad>", "<unk>", "a"});
        }).find("has no <0x00> at 2") != std::string::npos);
}

TEST_CASE("a corpus encodes its texts as the tokenizer does, and finds their pieces") {
  for (const auto& row : tokenizer_kinds) {
    if (is_imported(row.value)) continue;  // their tokens are not learned
    CAPTURE(row.name);
    const Cutting cutting{row.value, true};
    Corpus corpus;
    const CutSentence cut = cut_sentence("money bank grows", cutting);
    corpus.add(cut_sentence("a river", cutting).pieces);
    corpus.add(cut.pieces);
    const std::vector<Index> both = {0, 1};
    const Tokenizer tokenizer = Tokenizer::learn(cutting, corpus.counts(both), {.merges = 3});
    const CorpusEncoder encoder(corpus, tokenizer);
    Ids ids;
    for (const std::string& piece : cut.pieces) tokenizer.encode_piece(piece, ids);
    CHECK(encoder.ids(1) == ids);
    const Index bank = encoder.position(1, cut.positions[1]);
    const Ids rest(ids.begin() + bank, ids.end());
    CHECK(tokenizer.decode(rest).find("bank") < 2);
  }
}
