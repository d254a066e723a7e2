#include "datasets/conll.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

namespace {

std::vector<LabelledWords> read(const std::filesystem::path& file) {
  ReadCallback silent;
  std::vector<LabelledWords> sentences;
  for_each_conll_sentence(file, silent,
                          [&](const LabelledWords& sentence) { sentences.push_back(sentence); });
  return sentences;
}

}  // namespace

TEST_CASE("a CoNLL file gives words and the last column, sentence by sentence") {
  const TempDir dir;
  const auto sentences = read(
      dir.write("f.conll", "-DOCSTART- -X- O\n\nAnn NNP B-PER\nsings VBZ O\r\n\n\nRome\tB-LOC\n"));
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0].words == std::vector<std::string>{"Ann", "sings"});
  CHECK(sentences[0].labels == std::vector<std::string>{"B-PER", "O"});
  CHECK(sentences[0].place.ends_with("f.conll:3"));
  CHECK(sentences[1].labels == std::vector<std::string>{"B-LOC"});
}

TEST_CASE("a CoNLL line without a label and a file without sentences are refused") {
  const TempDir dir;
  const auto error = [&](std::string_view text) {
    const auto file = dir.write("f", text);
    return error_of<UserError>([&] { read(file); }).substr(dir.path().string().size() + 1);
  };
  CHECK(error("Ann O\nsings\n") == "f:2: must be a word and its label, got \"sings\"");
  CHECK(error("\n\n") == "f: has no sentence");
}

TEST_CASE("spans follow B- and I- as in the evaluation of CoNLL-2000") {
  CHECK(spans_of({"B-X", "I-X", "O", "B-X", "B-X"}) ==
        std::vector<Span>{{0, 2, "X"}, {3, 4, "X"}, {4, 5, "X"}});
  CHECK(spans_of({"I-X", "I-Y", "O", "I-Y"}) ==
        std::vector<Span>{{0, 1, "X"}, {1, 2, "Y"}, {3, 4, "Y"}});
  CHECK(spans_of({"O", "noun", "O"}).empty());
}

TEST_CASE("S-, U-, E- and L- are a whole span and the end of one (IOBES, BMES, BILOU)") {
  const std::vector<Span> expected = {{0, 3, "X"}, {3, 4, "X"}, {4, 6, "X"}};
  CHECK(spans_of({"B-X", "I-X", "E-X", "S-X", "B-X", "E-X"}) == expected);
  CHECK(spans_of({"B-X", "M-X", "E-X", "S-X", "B-X", "E-X"}) == expected);
  CHECK(spans_of({"B-X", "I-X", "L-X", "U-X", "B-X", "L-X"}) == expected);
  // As conlleval: what ends without a beginning, or with another type, is a span of its own.
  CHECK(spans_of({"S-X", "E-X", "I-X", "I-X", "O", "B-X", "E-Y"}) ==
        std::vector<Span>{{0, 1, "X"}, {1, 2, "X"}, {2, 4, "X"}, {5, 6, "X"}, {6, 7, "Y"}});
}
