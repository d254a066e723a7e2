#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "layers/model.h"
#include "layers/recurrent.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/loop/trainer.h"
#include "train/run/run.h"

namespace qkv::kinds_test {

namespace {

const std::string data = QKV_SOURCE_DIR "/datasets/";

/// A quick run of a kind of model on one of the project's data sets.
Config config_of(ModelKind kind, TaskKind task, const std::string& train) {
  Config config = tiny_config(task, data + train, 32);
  config.task.valid = config.task.train;
  config.model.kind = kind;
  config.model.width = 12;
  config.model.feed_forward = 16;
  config.model.bidirectional = kind == ModelKind::recurrent;
  config.optimizer.lr = 1e-2;
  config.train.steps = 80;
  config.train.batch = 16;
  config.train.eval_every = 40;
  config.train.checkpoint_every = 40;
  return config;
}

void run_to_end(Run& run, const RunFolder& folder) {
  Callback callback;
  train(run, folder, callback);
}

/// The training loss at each evaluation.
std::vector<double> losses(const std::string& metrics) {
  std::vector<double> found;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    if (event["split"] == "train") found.push_back(event["loss"]);
  }
  return found;
}

/// The loss falls, and a run that stops half way and resumes ends with the same bits.
void check_training(const Config& config) {
  const TempDir dir;
  const RunFolder whole(dir.path() / "whole"), second(dir.path() / "second");
  whole.create();
  Run run = start_run(config);
  run_to_end(run, whole);
  const auto measured = losses(run.metrics);
  REQUIRE(measured.size() == 2);
  CHECK(measured[1] < measured[0]);
  const auto half = whole.checkpoint(40);
  second.create();
  std::filesystem::copy_file(whole.best(), second.best());
  Run resumed = restore_run(config, read_checkpoint(half), half);
  run_to_end(resumed, second);
  const Checkpoint a = read_checkpoint(whole.last()), b = read_checkpoint(second.last());
  CHECK(a.step == b.step);
  for (const auto& [path, value] : a.model) {
    CAPTURE(path);
    CHECK(value.values() == b.model.at(path).values());
  }
}

}  // namespace

TEST_CASE("every kind of model learns to classify, and resumes bit for bit") {
  for (const ModelRow& row : model_kinds()) {
    if (row.value == ModelKind::encoder_decoder) continue;  // it translates
    CAPTURE(row.name);
    check_training(config_of(row.value, TaskKind::classify, "sentiment/valid.tsv"));
  }
}

TEST_CASE("every cell of a recurrent model learns word senses, and resumes bit for bit") {
  for (const CellRow& row : cell_kinds()) {
    CAPTURE(row.name);
    Config config = config_of(ModelKind::recurrent, TaskKind::word_sense, "bank/valid.tsv");
    config.model.cell = row.value;
    check_training(config);
  }
}

TEST_CASE("an encoder learns coreference, and resumes bit for bit") {
  check_training(config_of(ModelKind::encoder, TaskKind::coreference, "pronoun/valid.tsv"));
}

TEST_CASE("static embeddings learn from plain text by every objective, and resume bit for bit") {
  for (const Kind<Objective>& row : objectives) {
    CAPTURE(row.name);
    Config config =
        config_of(ModelKind::static_embedding, TaskKind::static_embedding, "bank/valid.tsv");
    config.task.objective = row.value;
    config.train.batch = 64;
    check_training(config);
  }
}

TEST_CASE("an encoder-decoder learns to translate, and resumes bit for bit") {
  check_training(config_of(ModelKind::encoder_decoder, TaskKind::translate, "idiom/valid.tsv"));
}

TEST_CASE("an encoder learns to tag, and resumes bit for bit") {
  check_training(config_of(ModelKind::encoder, TaskKind::tagging, "tagging/valid.conll"));
}

TEST_CASE("an encoder learns masked tokens of plain and labelled files, and resumes bit for bit") {
  for (const char* file : {"bank/valid.tsv", "tagging/valid.conll"})
    check_training(config_of(ModelKind::encoder, TaskKind::masked_language_model, file));
}

TEST_CASE("a decoder learns a text by every tokenizer, and resumes within an epoch bit for bit") {
  for (const auto& row : tokenizer_kinds) {
    if (is_imported(row.value)) continue;  // their tokens are not learned
    CAPTURE(row.name);
    Config config = config_of(ModelKind::decoder, TaskKind::language_model, "pronoun/valid.tsv");
    config.task.tokenizer = row.value;
    config.task.merges = 100;
    check_training(config);
  }
}

TEST_CASE("every task that reads sentences learns from byte pairs, and resumes bit for bit") {
  const std::vector<std::tuple<ModelKind, TaskKind, std::string>> tasks = {
      {ModelKind::encoder, TaskKind::word_sense, "bank/valid.tsv"},
      {ModelKind::encoder, TaskKind::classify, "sentiment/valid.tsv"},
      {ModelKind::encoder, TaskKind::coreference, "pronoun/valid.tsv"},
      {ModelKind::encoder, TaskKind::tagging, "tagging/valid.conll"},
      {ModelKind::encoder, TaskKind::masked_language_model, "bank/valid.tsv"},
      {ModelKind::encoder_decoder, TaskKind::translate, "idiom/valid.tsv"},
      {ModelKind::static_embedding, TaskKind::static_embedding, "bank/valid.tsv"}};
  for (const auto& [model, task, file] : tasks) {
    CAPTURE(file);
    Config config = config_of(model, task, file);
    config.task.tokenizer = TokenizerKind::bpe;
    config.task.merges = 60;
    config.model.max_length = 100;
    check_training(config);
  }
}

}  // namespace qkv::kinds_test
