#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "core/gradient_check.h"
#include "layers/pretrained.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/run/run.h"

namespace qkv::static_embedding_test {

namespace {

Config config_of(const std::filesystem::path& train) {
  Config config = tiny_config(TaskKind::static_embedding, train, 256);
  config.model.width = 3;
  return config;
}

std::vector<double> row(const Run& run, const std::string& word) {
  const Tensor table = run.network->model->embedding_table();
  const Index id = run.task->vocabulary().id(word);
  return slice(table, 0, id, id + 1).values();
}

/// The error of loading a file with this text, from its name on.
std::string vector_error(std::string_view text) {
  const TempDir dir;
  Config config = config_of(dir.write("text", "the cat saw the dog\n"));
  config.model.embedding_file = dir.write("v.txt", text).string();
  const std::string error = error_of<UserError>([&] { start_run(config); });
  const auto name = error.find("v.txt");
  return name == error.npos ? error : error.substr(name);
}

}  // namespace

TEST_CASE("the loss of every objective passes the gradient check in float64") {
  const TempDir dir;
  const auto file = dir.write("text", "the cat saw the dog and the dog saw a cat\na dog\n");
  for (const Objective objective : {Objective::skip_gram, Objective::cbow, Objective::glove}) {
    CAPTURE(static_cast<int>(objective));
    Config config = config_of(file);
    config.task.objective = objective;
    const Run run = start_run(config);
    convert(*run.network, DType::float64);
    const std::vector<Index> examples = {0, 3, 4, 12};
    auto checked = run.parameters;
    if (objective != Objective::glove)
      std::erase_if(checked, [](const NamedParameter& p) { return p.path == "head.bias"; });
    const GradientCheck check = check_gradients(checked, [&] {
      Context context;
      return run.task->loss(*run.network, examples, context).value;
    });
    CAPTURE(check.parameter);
    CHECK(check.error < 1e-6);
  }
}

TEST_CASE("negatives are drawn by count^0.75, but neither the target nor the unknown word") {
  // "a" stands 16 times, "b" and "c" once: of the negatives of an "a" are 1/2 "b" and 1/2 "c", of
  // those of a "b" 8/9 "a" and 1/9 "c".
  const TempDir dir;
  Config config = config_of(dir.write("text", "b a a a a a a a a a a a a a a a a c\n"));
  config.model.width = 1;
  config.task.window = 1;
  config.task.negatives = 500;
  const Run run = start_run(config);
  // All vectors being 1 and all output weights 0, every probability is 1/2: a word's output weight
  // has the gradient (negatives - occurrences as a neighbour) / 2 / pairs. Of the 34 pairs 32 have
  // the target "a", 1 "b" and 1 "c".
  for (const auto& [path, parameter] : run.parameters)
    parameter->assign(Tensor::full(parameter->shape(), path == "embedding.weight" ? 1 : 0));
  std::vector<Index> examples(18);
  std::iota(examples.begin(), examples.end(), 0);
  Context context({.random = Random(1, Purpose::dropout)});
  const BatchLoss loss = run.task->loss(*run.network, examples, context);
  CHECK(loss.targets == 34);
  const auto slopes = gradients_of(loss.value).of(run.network->head->weight).values();
  const auto drawn = [&](const std::string& word, double neighbour) {
    const auto id = static_cast<std::size_t>(run.task->vocabulary().id(word));
    return (slopes[id] * 2 * 34 + neighbour) / 500;
  };
  CHECK(std::abs(drawn("a", 32) - (8.0 + 8) / 9) < 0.1);
  CHECK(std::abs(drawn("b", 1) - (32.0 / 2 + 1.0 / 9)) < 0.5);
  CHECK(std::abs(drawn("c", 1) - (32.0 / 2 + 1.0 / 9)) < 0.5);
  CHECK(std::abs(drawn("<unk>", 0)) < 1e-3);
}

TEST_CASE("a model that knows the only neighbour of each word is right with any negatives") {
  const TempDir dir;
  Config config = config_of(dir.write("text", "p q\np q\n"));
  config.task.valid = config.task.train;
  config.task.window = 1;
  config.model.width = 2;
  for (const Objective objective : {Objective::skip_gram, Objective::cbow})
    for (const Index negatives : {1, 5, 15}) {
      CAPTURE(negatives);
      config.task.objective = objective;
      config.task.negatives = negatives;
      const Run run = start_run(config);
      const auto p = static_cast<std::size_t>(run.task->vocabulary().id("p")),
                 q = static_cast<std::size_t>(run.task->vocabulary().id("q"));
      // The vector of each word points to the context vector of the other.
      std::vector<double> vectors(8), contexts(8);
      vectors[2 * p] = contexts[2 * q] = vectors[2 * q + 1] = contexts[2 * p + 1] = 1;
      for (const auto& [path, parameter] : run.parameters)
        parameter->assign(path == "embedding.weight" ? Tensor::from(vectors, {4, 2})
                          : path == "head.weight"    ? Tensor::from(contexts, {4, 2})
                                                     : Tensor::zeros(parameter->shape()));
      CHECK(run.task->evaluate(*run.network, Split::valid).metric("accuracy") == 1);
    }
}

TEST_CASE("negative sampling is refused where a text has one word alone") {
  const TempDir dir;
  Config config = config_of(dir.write("text", "a a a\n"));
  CHECK(error_of<UserError>([&] { make_task(config); }) ==
        "the training text has one word alone; negative sampling needs two different ones");
  config.task.objective = Objective::glove;
  CHECK(make_task(config)->size(Split::train) == 1);
}

TEST_CASE("GloVe counts pairs of words by 1 / distance within the window and the line") {
  const TempDir dir;
  Config config = config_of(dir.write("text", "a b c d\nd a\n"));
  config.task.objective = Objective::glove;
  config.task.window = 2;
  CHECK(make_task(config)->size(Split::train) == 12);  // ab bc cd ac bd da, both ways
}

TEST_CASE("static embeddings can be inspected, but predict nothing") {
  const TempDir dir;
  const Run run = start_run(config_of(dir.write("text", "the cat saw the dog\n")));
  Recorder recorder(*run.network);
  Context context({.recorder = &recorder});
  const Sentence sentence = run.task->read("the dog");
  CHECK(run.task->scores(*run.network, sentence, 0, context).choices.empty());
  CHECK(recorder.at("static").shape() == Shape{1, 2, 3});
  CHECK(error_of<UserError>([&] { run.task->predict(*run.network, "the dog"); }) ==
        "a model of static embeddings predicts nothing; qkv embed shows its vectors");
}

TEST_CASE("text without neighbours is refused") {
  const TempDir dir;
  const auto file = dir.write("text", "one\ntwo\n");
  CHECK(error_of<UserError>([&] { make_task(config_of(file)); }) ==
        file.string() + ": no line has two words that occur task.min_count = 1 times");
}

TEST_CASE("vectors are taken from GloVe and word2vec files, other words keep theirs") {
  const TempDir dir;
  Config config = config_of(dir.write("text", "the cat saw the dog\n"));
  const auto random_row = row(start_run(config), "saw");
  for (const std::string header : {"", "4 3\n"}) {
    config.model.embedding_file =
        dir.write("v.txt", header + "cat 1 -2.5 3e-1\nbird 1 1 1\nthe 4 5 6\ncat 7 7 7\n");
    const Run run = start_run(config);
    CHECK(row(run, "the") == std::vector<double>{4, 5, 6});
    CHECK(row(run, "cat")[1] == -2.5);
    CHECK(row(run, "saw") == random_row);
  }
}

TEST_CASE("an invalid file of vectors is refused and names the line") {
  CHECK(vector_error("cat 1 2 3\nthe 4 5\n") ==
        "v.txt:2: must be a word and model.width = 3 values, got 2 values");
  CHECK(vector_error("2 5\ncat 1 2 3 4 5\n") ==
        "v.txt:1: announces vectors of 5 values; model.width = 3");
  CHECK(vector_error("cat 1 x 3\n") == "v.txt:1: \"x\" is not a finite number");
  CHECK(vector_error("cat 1 inf 3\n") == "v.txt:1: \"inf\" is not a finite number");
  CHECK(vector_error("cat 1 -3.5e38 3\n") == "v.txt:1: \"-3.5e38\" is not a finite number");
  CHECK(vector_error("bird 1 2 3\n") == "v.txt: has none of the 6 words of the training data");
}

TEST_CASE("frozen vectors do not change while others are trained, also after a restart") {
  const TempDir dir;
  Config config = config_of(dir.write("text", "the cat saw the dog\n"));
  config.train.freeze = {"embedding"};
  Run run = start_run(config);
  const auto before = row(run, "cat");
  const std::vector<Index> examples = {0, 1, 2};
  const auto step = [&](Run& of) {
    Context context;
    of.optimizer->step(of.parameters,
                       gradients_of(of.task->loss(*of.network, examples, context).value), 0.1, 0);
  };
  step(run);
  CHECK(row(run, "cat") == before);
  Run restored = restore_run(config, run.checkpoint({}), "c.h5");
  step(restored);
  CHECK(row(restored, "cat") == before);
  config.train.freeze = {};
  Run learning = start_run(config);
  step(learning);
  CHECK(row(learning, "cat") != before);
}

TEST_CASE("one-hot vectors are 1 at the word's id, and as wide as the vocabulary") {
  const TempDir dir;
  Config config = config_of(dir.write("text", "the cat saw the dog\n"));
  config.model.embedding = EmbeddingKind::one_hot;
  CHECK(error_of<UserError>([&] { start_run(config); }) ==
        "model.embedding \"one-hot\" needs model.width = 6, the size of the vocabulary, got 3");
  config.model.width = 6;
  const Run run = start_run(config);
  CHECK(run.task->vocabulary().id("the") == 2);
  CHECK(row(run, "the") == std::vector<double>{0, 0, 1, 0, 0, 0});
}

TEST_CASE("the text of a line with columns is the last one") {
  const TempDir dir;
  const Run plain = start_run(config_of(dir.write("text", "money bank grows\n")));
  const Run labelled = start_run(config_of(dir.write("text.tsv", "river\t1\tmoney bank grows\n")));
  CHECK(plain.task->vocabularies() == labelled.task->vocabularies());
}

TEST_CASE("vectors written as word2vec text come back bit for bit") {
  const TempDir dir;
  Config config = config_of(dir.write("text", "the cat saw the dog\n"));
  const Run run = start_run(config);
  const Tensor table = run.network->model->embedding_table();
  const std::string text = word2vec_text(run.task->vocabulary().tokens(), table);
  CHECK(text.starts_with("4 3\nthe "));
  config.seed = 2;
  config.model.embedding_file = dir.write("v.txt", text).string();
  const Run other = start_run(config);
  CHECK(row(other, "cat") == row(run, "cat"));
  CHECK(row(other, "<unk>") != row(run, "<unk>"));
}

TEST_CASE("a token with white space in it is not in word2vec text") {
  const Vocabulary letters({"<pad>", "<unk>", " ", "a"});
  CHECK(word2vec_text(letters.tokens(), Tensor::zeros({4, 2})) == "1 2\na 0 0\n");
}

}  // namespace qkv::static_embedding_test
