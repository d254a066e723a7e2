#include "inspect/word_vectors.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace qkv;

namespace {

WordVector word(std::string name, std::string sentence, std::vector<double> vector) {
  Sentence words{{std::move(name), std::move(sentence)}, {5, 6}, {}};
  return {"label", "text", words, 0, vector, vector};
}

}  // namespace

TEST_CASE("neighbours are the nearest by cosine, without the word itself") {
  const WordVector bank = word("bank", "one", {1, 0});
  const std::vector<WordVector> all = {bank, word("far", "two", {-1, 0.1}),
                                       word("near", "three", {2, 0.1}),
                                       word("middle", "four", {1, 1})};
  const auto found = neighbours(bank, all, &WordVector::contextual, 2);
  REQUIRE(found.size() == 2);
  CHECK(found[0].word->word() == "near");
  CHECK(found[1].word->word() == "middle");
  CHECK(found[1].cosine == doctest::Approx(std::sqrt(0.5)));
}

TEST_CASE("a word is one static neighbour however many sentences have it") {
  const WordVector bank = word("bank", "one", {1, 0});
  const std::vector<WordVector> all = {word("bank", "two", {1, 0}), word("fund", "two", {1, 1}),
                                       word("fund", "three", {1, 1})};
  CHECK(neighbours(bank, all, &WordVector::static_vector, 9).size() == 1);
  CHECK(neighbours(bank, all, &WordVector::contextual, 9).size() == 3);
}

TEST_CASE("a planar view has two coordinates even of one-dimensional vectors") {
  const auto view =
      planar_view({word("a", "x", {1}), word("b", "y", {3})}, &WordVector::contextual);
  CHECK(view.points[0][0] == doctest::Approx(-1));
  CHECK(view.points[1][0] == doctest::Approx(1));
  CHECK(view.points[0][1] == 0);
}
