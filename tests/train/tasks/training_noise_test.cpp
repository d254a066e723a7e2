#include <doctest/doctest.h>

#include "tests/support/temp_dir.h"
#include "tests/support/word_senses.h"
#include "train/run/run.h"

using namespace qkv;

TEST_CASE("word dropout hides words in training alone, never the one that is asked about") {
  const TempDir dir;
  Config config = uniform_attention(dir.write("f.tsv", word_senses));
  const auto losses = [&](double word_dropout, const std::string& file) {
    Config changed = config;
    changed.task.word_dropout = word_dropout;
    const Run run = start_run(changed);
    const std::vector<Index> all = {0, 1, 2};
    Context training({.random = Random(1, Purpose::dropout)});
    return std::pair(run.task->loss(*run.network, all, training).value.item(),
                     run.task->evaluate(*run.network, std::filesystem::path(file)).loss);
  };
  const std::string unknown =
      dir.write("u.tsv", "a\t2\t? ? x ? ? ?\na\t1\t? x ? ? ? ?\nb\t3\t? ? ? x ? ?\n").string();
  const auto [none, hidden] = losses(0, unknown);
  CHECK(losses(1e12, unknown).first == doctest::Approx(hidden));
  CHECK(losses(1e12, config.task.test).second == doctest::Approx(none));
  CHECK(none != doctest::Approx(hidden));
}

TEST_CASE("word dropout spares what begins and ends a sentence of wordpiece") {
  const TempDir dir;
  Config config = uniform_attention(dir.write("f.tsv", "a\tbank flows\nb\tflows bank flows\n"));
  config.task.kind = TaskKind::classify;
  config.task.tokenizer = TokenizerKind::word_piece;
  config.task.word_dropout = 1e12;
  ReadCallback silent;
  const Task::Vocabularies known = {
      {"tokens", {"<pad>", "<unk>", "[CLS]", "[SEP]", "bank", "flows"}}};
  const auto task = make_task(config, known, silent);
  Network network(config.model, config.head, task->vocabulary().size(), task->outputs(),
                  Random(1, Purpose::initialisation));
  const std::vector<Index> all = {0, 1};
  Context training({.random = Random(1, Purpose::dropout)});
  const double hidden = task->loss(network, all, training).value.item();
  // Other words than these are unknown, [CLS] and [SEP] are as they were.
  const auto read = dir.write("u.tsv", "a\t? ?\nb\t? ? ?\n").string();
  CHECK(hidden == doctest::Approx(task->evaluate(network, std::filesystem::path(read)).loss));
}

TEST_CASE("class weights and label smoothing change the training loss alone") {
  const TempDir dir;
  Config config = uniform_attention(dir.write("f.tsv", word_senses));
  const auto losses = [&] {
    const Run run = start_run(config);
    const std::vector<Index> all = {0, 1, 2};
    Context training({.random = Random(1, Purpose::dropout)});
    return std::pair(run.task->loss(*run.network, all, training).value.item(),
                     run.task->evaluate(*run.network, Split::test).loss);
  };
  const auto plain = losses();
  CHECK(plain.first == doctest::Approx(plain.second));
  config.task.class_weights = ClassWeights::balanced;
  const auto balanced = losses();
  config.task.label_smoothing = 0.2;
  const auto smoothed = losses();
  CHECK(balanced.first != doctest::Approx(plain.first));
  CHECK(smoothed.first != doctest::Approx(balanced.first));
  CHECK(balanced.second == plain.second);
  CHECK(smoothed.second == plain.second);
}
