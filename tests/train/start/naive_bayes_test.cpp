#include "train/start/naive_bayes.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/word_senses.h"
#include "train/run/run.h"

using namespace qkv;

namespace {

Config config_of(const std::filesystem::path& file) {
  Config config = uniform_attention(file);
  config.model.embedding_std = 0.1;
  config.init = InitKind::naive_bayes;
  return config;
}

Config with_windows(Config config, Index heads) {
  config.model.width = 2 * heads;
  config.model.heads = heads;
  config.model.attention = AttentionKind::learned;
  config.model.position = PositionKind::windows;
  return config;
}

std::vector<double> logits_of(const Run& run, std::string_view text, Index index) {
  const NoGrad no_grad;
  Context context;
  return run.task->scores(*run.network, run.task->read(text), index, context).logits.values();
}

/// Log odds of a word or stem that is in so many of the examples of a and of b, among so many.
double log_odds(double a, double b, double words, double of_a, double of_b) {
  return std::log((a + 0.05) / (of_a + 0.05 * words)) -
         std::log((b + 0.05) / (of_b + 0.05 * words));
}

/// The words besides x: 9, of which 9 are in examples of a and 4 in those of b.
double word_odds(double a, double b) {
  return log_odds(a, b, 9, 9, 4);
}

}  // namespace

TEST_CASE(
    "before its first step, a model of uniform attention is naive Bayes over words and stems") {
  const TempDir dir;
  const Run run = start_run(config_of(dir.write("f.tsv", word_senses)));
  // The only stem is "rive", in both examples of a.
  const double expected = std::log(2.0) + word_odds(2, 0) + word_odds(1, 0) +
                          log_odds(2, 0, 1, 2, 0) + 2 * word_odds(0, 1);
  // The mean over the 5 tokens, times the mean number of 6 tokens.
  const auto logits = logits_of(run, "p rivers x w w", 2);
  const double scale = 6.0 / 5;
  CHECK(logits[0] - logits[1] ==
        doctest::Approx(0.2 * (std::log(2.0) + scale * (expected - std::log(2.0)))).epsilon(1e-5));
}

TEST_CASE("each head counts the words of its window") {
  const TempDir dir;
  const Run run = start_run(with_windows(config_of(dir.write("f.tsv", word_senses)), 3));
  const auto vectors = run.network->model->embedding.weight.value().values();
  const auto first_of = [&](std::string_view word, std::size_t head) {
    return vectors[static_cast<std::size_t>(run.task->vocabulary().id(word)) * 6 + head * 2];
  };
  // Before x there are q and p, with a, and t, with b; after it q and riverbank, with a, and t.
  CHECK(first_of("p", 1) == doctest::Approx(log_odds(1, 0, 3, 2, 1) / 2).epsilon(1e-5));
  CHECK(first_of("t", 2) == doctest::Approx(log_odds(0, 1, 3, 2, 1) / 2).epsilon(1e-5));
  CHECK(first_of("p", 2) == 0);
  CHECK(first_of("t", 0) == doctest::Approx(word_odds(1, 1) / 2).epsilon(1e-5));
  CHECK(first_of("x", 0) == 0);
}

TEST_CASE("the classes of texts start as naive Bayes, with attention and without") {
  const TempDir dir;
  Config config = config_of(dir.write("f.tsv", "a\tp q r\na\tp s t\nb\tq u p\n"));
  config.task.kind = TaskKind::classify;
  const double expected =
      std::log(2.0) + log_odds(0, 1, 6, 6, 3) + log_odds(1, 1, 6, 6, 3) + log_odds(1, 0, 6, 6, 3);
  for (const ModelKind kind : {ModelKind::encoder, ModelKind::static_embedding}) {
    config.model.kind = kind;
    const auto logits = logits_of(start_run(config), "u q r", -1);
    CHECK(logits[0] - logits[1] == doctest::Approx(0.2 * expected).epsilon(1e-5));
  }
}

TEST_CASE("an n-gram counts as a whole, not by its first letters") {
  const TempDir dir;
  Config config = config_of(dir.write("f.tsv", "a\tplot p\na\tplot q\nb\tplot r\n"));
  config.task.kind = TaskKind::classify;
  config.task.ngrams = 2;
  config.model.kind = ModelKind::static_embedding;
  const Run run = start_run(config);
  const auto vectors = run.network->model->embedding.weight.value().values();
  const auto width = static_cast<std::size_t>(config.model.width);
  const auto id = static_cast<std::size_t>(run.task->vocabulary().id("plot r"));
  // A label's pieces: 6 with a and 3 with b, of 7 kinds.
  CHECK(vectors[id * width] - vectors[id * width + 1] ==
        doctest::Approx(log_odds(0, 1, 7, 6, 3)).epsilon(1e-5));
}

TEST_CASE("a naive Bayes start needs heads at least as wide as there are labels") {
  const TempDir dir;
  Config config = with_windows(config_of(dir.write("f.tsv", word_senses)), 3);
  config.model.width = 3;
  CHECK(error_of<UserError>([&] { start_run(config); }) ==
        "model.init \"naive-bayes\" needs heads at least as wide as there are labels, 2; got "
        "model.width / model.heads = 1");
}
