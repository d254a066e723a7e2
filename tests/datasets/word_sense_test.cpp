#include "datasets/sentences.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "tests/support/errors.h"
#include "tests/support/read_files.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

namespace {

std::vector<SentenceExample> read(const std::filesystem::path& file, std::string_view columns,
                                  SentenceExample (*parse)(const TsvRow&, const Cutting&)) {
  std::vector<SentenceExample> examples;
  for (const TsvRow& row : read_tsv(file, columns)) examples.push_back(parse(row, {}));
  return examples;
}

std::vector<SentenceExample> read_word_sense_tsv(const std::filesystem::path& file) {
  return read(file, word_sense_columns, parse_labelled);
}

std::string tsv_error(std::string_view text) {
  const TempDir dir;
  const auto file = dir.write("f.tsv", text);
  return error_of<UserError>([&] { read_word_sense_tsv(file); })
      .substr(dir.path().string().size() + 1);
}

}  // namespace

TEST_CASE("a word-sense file gives label, words and position") {
  const TempDir dir;
  const auto examples =
      read_word_sense_tsv(dir.write("f", "money\t1\tmoney bank grows\nriver\t0\tbank\r\n"));
  REQUIRE(examples.size() == 2);
  CHECK(examples[0] == SentenceExample{"money", {"money", "bank", "grows"}, 1});
  CHECK(examples[1] == SentenceExample{"river", {"bank"}, 0});
}

TEST_CASE("sentences become tokens, and indices count the words between white space") {
  const TempDir dir;
  const auto senses = read_word_sense_tsv(
      dir.write("f", "a\t1\tAn Apple, red\nb\t0\t(\"Apple\") sells\nb\t2\tapple . , x\n"));
  CHECK(senses[0] == SentenceExample{"a", {"an", "apple", ",", "red"}, 1});
  CHECK(senses[1] == SentenceExample{"b", {"(", "\"", "apple", "\"", ")", "sells"}, 2});
  CHECK(senses[2] == SentenceExample{"b", {"apple", ".", ",", "x"}, 2});
  const auto pronouns =
      read(dir.write("g", "1\t3\tWell, Ann said she\n"), coreference_columns, parse_coreference);
  CHECK(pronouns[0].pieces == std::vector<std::string>{"well", ",", "ann", "said", "she"});
  CHECK(pronouns[0].antecedent == 2);
  CHECK(pronouns[0].index == 4);
}

TEST_CASE("a malformed word-sense line is named by file and line") {
  CHECK(tsv_error("a\t0\tok\nmoney bank grows\n") ==
        "f.tsv:2: must be label<TAB>index<TAB>sentence, got 1 field");
  CHECK(tsv_error("a\t0\tb\tc\n") ==
        "f.tsv:1: must be label<TAB>index<TAB>sentence, got 4 fields; name the columns in a first "
        "line");
  CHECK(tsv_error("\t0\tb\n") == "f.tsv:1: the label is empty");
  CHECK(tsv_error("a\t0\t \n") == "f.tsv:1: the sentence is empty");
  CHECK(tsv_error("a\tx\tb\n") == "f.tsv:1: the index must be an integer from 0, got \"x\"");
  CHECK(tsv_error("a\t-1\tb\n") == "f.tsv:1: the index must be an integer from 0, got \"-1\"");
  CHECK(tsv_error("a\t2\tb c\n") ==
        "f.tsv:1: the index must be less than the sentence's 2 words, got 2");
  CHECK(tsv_error("a\t99999999999999999999\tb\n") ==
        "f.tsv:1: the index must be an integer from 0, got \"99999999999999999999\"");
}

TEST_CASE("a long sentence is cropped around its word, without one to its beginning") {
  CHECK(crop_begin(6, 4, 6) == 0);
  CHECK(crop_begin(6, 4, 3) == 3);
  CHECK(crop_begin(6, 3, 3) == 2);
  CHECK(crop_begin(4, 0, 2) == 0);
  CHECK(crop_begin(6, -1, 3) == 0);
}

namespace {

constexpr auto splits = {"train", "valid", "test"};

std::vector<SentenceExample> bank(const std::string& split) {
  return read_word_sense_tsv(QKV_SOURCE_DIR "/datasets/bank-twins/" + split + ".tsv");
}

}  // namespace

TEST_CASE("every bank split is balanced, and each sentence has one bank") {
  for (const char* split : splits) {
    const auto examples = bank(split);
    CHECK(std::ranges::count(examples, "money", &SentenceExample::label) * 2 ==
          std::ssize(examples));
    for (const auto& e : examples) {
      REQUIRE(std::ranges::count(e.pieces, "bank") == 1);
      REQUIRE(e.pieces[static_cast<std::size_t>(e.index)] == "bank");
    }
  }
}

TEST_CASE("no bank sentence occurs twice") {
  std::set<std::vector<std::string>> seen;
  for (const char* split : splits)
    for (const auto& example : bank(split)) REQUIRE(seen.insert(example.pieces).second);
}

TEST_CASE("the bank test holds no word that training lacks") {
  std::set<std::string> known;
  for (const auto& example : bank("train"))
    known.insert(example.pieces.begin(), example.pieces.end());
  for (const auto& example : bank("test"))
    for (const std::string& word : example.pieces) REQUIRE(known.contains(word));
}

TEST_CASE("most bank sentences have a twin of the same words and the other sense") {
  const auto examples = bank("test");
  std::multiset<std::vector<std::string>> money, river;
  for (const auto& example : examples) {
    auto sorted = example.pieces;
    std::ranges::sort(sorted);
    (example.label == "money" ? money : river).insert(sorted);
  }
  std::vector<std::vector<std::string>> twins;
  std::ranges::set_intersection(money, river, std::back_inserter(twins));
  CHECK(twins.size() == 160);
}
