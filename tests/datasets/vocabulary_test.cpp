#include "datasets/vocabulary.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "tests/support/errors.h"

using namespace qkv;

using Words = std::vector<std::string>;

TEST_CASE("ids go to the most frequent words first and to equally frequent ones by spelling") {
  const Vocabulary::Counts counts = {{"river", 1}, {"bank", 2}, {"money", 1}};
  CHECK(Vocabulary::build(counts, 1).tokens() == Words{"<pad>", "<unk>", "bank", "money", "river"});
}

TEST_CASE("rare words are left out and read as unknown") {
  const Vocabulary::Counts counts = {{"river", 1}, {"bank", 2}, {"money", 1}};
  const Vocabulary vocabulary = Vocabulary::build(counts, 2);
  CHECK(vocabulary.size() == 3);
  CHECK(vocabulary.id("bank") == 2);
  CHECK(vocabulary.id("river") == Vocabulary::unknown);
}

TEST_CASE("tokens that are known before come first, and keep their ids") {
  const Vocabulary::Counts counts = {{"river", 3}, {"bank", 2}, {"money", 1}};
  const Words known = {"<pad>", "<unk>", "the", "bank"};
  CHECK(Vocabulary::build(counts, 2, known).tokens() ==
        Words{"<pad>", "<unk>", "the", "bank", "river"});
}

TEST_CASE("a text cannot pass for padding or the unknown word") {
  const Vocabulary::Counts counts = {{"<pad>", 2}, {"<unk>", 1}};
  const Vocabulary vocabulary = Vocabulary::build(counts, 1);
  CHECK(vocabulary.tokens() == Words{"<pad>", "<unk>"});
  CHECK(vocabulary.id("<pad>") == Vocabulary::unknown);
  CHECK(vocabulary.id("<unk>") == Vocabulary::unknown);
}

TEST_CASE("a vocabulary made of its own tokens has the same ids") {
  const Vocabulary::Counts counts = {{"river", 1}, {"bank", 1}};
  const Vocabulary vocabulary(Vocabulary::build(counts, 1).tokens());
  CHECK(vocabulary.token(vocabulary.id("river")) == "river");
}

TEST_CASE("a token list from outside is checked") {
  CHECK(error_of<FileError>([] { Vocabulary({"bank"}); }) ==
        "a vocabulary must begin with <pad> and <unk>");
  CHECK(error_of<FileError>([] {
          Vocabulary({"<pad>", "<unk>", "a", "a"});
        }) == "a vocabulary must not name \"a\" twice");
}
