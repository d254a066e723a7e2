#include "inspect/word_vectors.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace qkv;

namespace {

WordVector word(std::string name, std::string sentence, std::vector<double> vector) {
  Sentence words{{std::move(name), std::move(sentence)}, {5, 6}, {}};
  return {"label", "text", std::make_shared<const Sentence>(words), 0, vector, vector};
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

TEST_CASE("mean cosines within and between labels are those of all pairs") {
  std::vector<WordVector> words;
  const std::vector<std::vector<double>> vectors = {{1, 0}, {3, 4}, {-2, 1}, {0, 5}, {0, 0}};
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    words.push_back(word("bank", std::to_string(i), vectors[i]));
    words.back().label = i % 2 ? "money" : "river";
  }
  double same = 0, different = 0;
  for (std::size_t i = 0; i < words.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const double value = cosine(vectors[i], vectors[j]);
      (words[i].label == words[j].label ? same : different) += value;
    }
  const LabelCosines found = label_cosines(words, &WordVector::contextual);
  CHECK(found.same.value() == doctest::Approx(same / 4));
  CHECK(found.different.value() == doctest::Approx(different / 6));
  words.resize(1);
  CHECK_FALSE(label_cosines(words, &WordVector::contextual).same);
  CHECK_FALSE(label_cosines(words, &WordVector::contextual).different);
}

TEST_CASE("points in a plane have two coordinates even of one-dimensional vectors") {
  const Tensor rows = stacked({word("a", "x", {1}), word("b", "y", {3})}, &WordVector::contextual);
  const auto points = in_plane(principal_components(rows, 2), rows);
  CHECK(points[0][0] == doctest::Approx(-1));
  CHECK(points[1][0] == doctest::Approx(1));
  CHECK(points[0][1] == 0);
}

TEST_CASE("the words of a sentence share it: a word takes the memory of its two vectors") {
  Config config;
  config.name = "small";
  config.task.train = QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";
  const Run run = start_run(config);
  const auto words = word_vectors(run, run.task->read("money bank grows"), -1);
  REQUIRE(words.size() == 3);
  CHECK(words[0].sentence == words[2].sentence);
  CHECK(words[2].word() == "grows");
}
