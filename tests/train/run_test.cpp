#include "train/run/run.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/mutations.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

namespace {

Config tiny_config() {
  Config config;
  config.name = "tiny";
  config.task.train = config.task.valid = config.task.test =
      QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";
  config.model.width = 8;
  config.model.layers = 1;
  config.model.heads = 2;
  return config;
}

/// A run whose optimizer has state; its step is still 0.
Run after_one_update() {
  Run run = start_run(tiny_config());
  const std::vector<Index> examples = {0, 1, 2, 3};
  Context context;
  run.optimizer->step(run.parameters,
                      gradients_of(run.task->loss(*run.network, examples, context).value), 0.1, 0);
  return run;
}

}  // namespace

TEST_CASE("a checkpoint restores every parameter and the optimizer's state") {
  Run run = after_one_update();
  run.step = 1;
  const Run restored = restore_run(run.config, run.checkpoint({}), "c.h5");
  CHECK(restored.step == 1);
  for (std::size_t i = 0; i < run.parameters.size(); ++i)
    CHECK(restored.parameters[i].parameter->value().values() ==
          run.parameters[i].parameter->value().values());
  for (const auto& [name, value] : run.optimizer->state())
    CHECK(restored.optimizer->state().at(name).values() == value.values());
}

TEST_CASE("a checkpoint of another model is refused with every difference") {
  Run run = start_run(tiny_config());
  const Checkpoint checkpoint = run.checkpoint({});
  Config wider = tiny_config();
  wider.model.width = 16;
  wider.model.attention = AttentionKind::uniform;
  Run other = start_run(wider);
  const std::string error =
      error_of<CheckpointError>([&] { other.load_parameters(checkpoint, "c.h5"); });
  CHECK(error.starts_with("c.h5: does not hold the model that its config describes: "));
  CHECK(error.find("head.weight has shape (2, 8) instead of (2, 16)") != error.npos);
  CHECK(error.find("encoder.layers.0.attention.w_q.weight is not a parameter of it") != error.npos);
}

TEST_CASE("a checkpoint of a model with another number of heads is refused") {
  Run run = start_run(tiny_config());
  const Checkpoint checkpoint = run.checkpoint({});
  Config other = tiny_config();
  other.model.heads *= 2;
  const std::string error =
      error_of<CheckpointError>([&] { restore_run(other, checkpoint, "c.h5"); });
  CHECK(error.starts_with(fmt::format(
      "c.h5: its model has model.heads = {}, and encoder.layers.0.attention of this one has {}",
      tiny_config().model.heads, other.model.heads)));
}

TEST_CASE("a checkpoint without a token list is refused") {
  Run run = start_run(tiny_config());
  Task::Vocabularies vocabularies = run.task->vocabularies();
  vocabularies.erase("labels");
  CHECK(error_of<FileError>([&] { restore_task(tiny_config(), vocabularies); }) ==
        "the checkpoint has no /vocabulary/labels");
}

TEST_CASE("the hash of the data changes with an example of any task, and not with blank lines") {
  const TempDir dir;
  struct Data {
    TaskKind kind;
    ModelKind model;
    std::string text, changed;
  };
  for (const auto& [kind, model, text, changed] : std::vector<Data>{
           {TaskKind::classify, ModelKind::encoder, "a\tx y\nb\ty x\n", "b\tx y\na\ty x\n"},
           {TaskKind::classify, ModelKind::encoder, "a\tx y\nb\ty x\n", "a\ty x\nb\tx y\n"},
           {TaskKind::word_sense, ModelKind::encoder, "a\t0\tx x y\nb\t0\tx\n",
            "a\t1\tx x y\nb\t0\tx\n"},
           {TaskKind::coreference, ModelKind::encoder, "0\t2\tx y it\n", "1\t2\tx y it\n"},
           {TaskKind::translate, ModelKind::encoder_decoder, "x y\tu v\n", "x y\tv u\n"},
           {TaskKind::static_embedding, ModelKind::static_embedding, "x y z\n", "x z y\n"},
           {TaskKind::masked_language_model, ModelKind::encoder, "x y\nz\n", "x\ny z\n"},
           {TaskKind::language_model, ModelKind::decoder, "abcabcab\n", "abcbacab\n"}}) {
    CAPTURE(text);
    Config config = tiny_config();
    config.task.kind = kind;
    config.task.valid = config.task.test = "";
    config.model.kind = model;
    config.model.max_length = 4;
    const auto hash = [&](const std::string& data) {
      config.task.train = dir.write("train", data).string();
      return start_run(config).data_hash;
    };
    CHECK(hash(text) == hash(text));
    CHECK(hash(text) != hash(changed));
    if (kind != TaskKind::language_model) CHECK(hash(text) == hash("\n" + text + "\n"));
  }
}

TEST_CASE("capitals and punctuation make no other word, in files as in what a user types") {
  const TempDir dir;
  Config config = tiny_config();
  config.task.train = dir.write("train",
                                "firm\t0\tApple sells phones\nfruit\t1\tthe apple fell\n"
                                "firm\t0\tApple, they say\n");
  config.task.valid = config.task.test = "";
  const Run run = start_run(config);
  CHECK(run.task->vocabularies().at("targets") == std::vector<std::string>{"apple"});
  for (const char* text : {"Apple sells phones", "apple fell", "they say apple, they", "Apple"})
    CHECK(run.task->predict(*run.network, text).size() == 1);
}

TEST_CASE("macro F1 is over the labels that the data or the answers have, as in scikit-learn") {
  const TempDir dir;
  Config config = tiny_config();
  config.task.kind = TaskKind::classify;
  config.task.train = dir.write("train", "a\tx\nb\ty\nc\tz\nd\tw\n");
  config.task.valid = config.task.test = "";
  Run run = start_run(config);
  // The model always answers "b".
  Parameter& bias = *run.network->head->bias;
  run.network->head->weight.assign(Tensor::zeros(run.network->head->weight.shape()));
  bias.assign(Tensor::from({0, 1, 0, 0}, {4}));
  const auto evaluated = [&](std::string_view text) {
    return run.task->evaluate(*run.network, dir.write("test", text));
  };
  const Evaluation two = evaluated("b\tx\na\ty\nb\tz\n");
  // F1 of b is 2 (2/3) (1) / (5/3) = 0.8, of a 0; c and d do not occur.
  CHECK(two.metric("macro_f1") == doctest::Approx((0.8 + 0) / 2));
  CHECK(two.labels[1].recall == 1);
  const Evaluation predicted = evaluated("a\tx\n");
  CHECK(predicted.metric("macro_f1") == 0);
}

TEST_CASE("evaluation counts what is right for each label") {
  Run run = start_run(tiny_config());
  const Evaluation evaluation = run.task->evaluate(*run.network, Split::valid);
  CHECK(evaluation.count == 200);
  CHECK(evaluation.metric("accuracy") ==
        doctest::Approx((evaluation.labels[0].recall + evaluation.labels[1].recall) / 2));
}

TEST_CASE("a checkpoint whose values no run can have is refused, whatever its seal says") {
  Run run = after_one_update();
  run.step = 3;
  const Checkpoint good = run.checkpoint({});
  const double infinity = std::numeric_limits<double>::infinity();
  const auto error_with = [&](auto change) {
    Checkpoint checkpoint = good;
    change(checkpoint);
    return error_of<FileError>([&] { restore_run(run.config, checkpoint, "c.h5"); });
  };
  CHECK(error_with([](Checkpoint&) {}) == "no error");
  CHECK(error_with([](Checkpoint& c) {
          c.step = std::int64_t{1} << 60;
        }).starts_with("c.h5: step 1152921504606846976 is more than 288230376151711742"));
  for (const char* name : {"interval_steps", "updates", "best_step"})
    for (const double steps : {-1.0, 0.5, 4.0, infinity, std::nan("")})
      CHECK(error_with([&](Checkpoint& c) { c.progress[name] = steps; })
                .starts_with(fmt::format(
                    "c.h5: /progress/{} must be an integer from 0 to the step 3", name)));
  for (const char* name : {"interval_loss", "best_score"})
    for (const double value : {infinity, std::nan("")})
      CHECK(error_with([&](Checkpoint& c) {
              c.progress[name] = value;
            }).starts_with(fmt::format("c.h5: /progress/{} must be finite", name)));
  CHECK(error_with([](Checkpoint& c) {
          c.progress.erase("permuted_examples");
        }).starts_with("c.h5: /progress/permuted_examples is missing"));
  CHECK(error_with([](Checkpoint& c) {
          c.progress.erase("best_loss");
        }).starts_with("c.h5: /progress/best_loss is missing"));
  CHECK(error_with([](Checkpoint& c) {
          c.metrics = "{\"step\":1,\"split\":\"train\"}\nx\n";
        }).starts_with("c.h5: line 2 of /progress/metrics must be an evaluation in JSON"));
  CHECK(error_with([&](Checkpoint& c) {
          c.optimizer["first_moment.head.bias"] = Tensor::full({2}, infinity);
        }).starts_with("c.h5: first_moment.head.bias holds a value that is not finite"));
  CHECK(error_with([&](Checkpoint& c) {
          c.optimizer["first_moment.head.bias"] = Tensor::zeros({2}, DType::float64);
        }).ends_with("state first_moment.head.bias holds float64 instead of float32"));
}

TEST_CASE("token lists of a checkpoint have no empty text, and no label or token twice") {
  const Run run = start_run(tiny_config());
  const auto lists = run.task->vocabularies();
  const auto error_of_list = [&](const std::string& name, std::vector<std::string> texts) {
    auto changed = lists;
    changed[name] = std::move(texts);
    return error_of<FileError>([&] { restore_task(run.config, changed); });
  };
  CHECK(error_of_list("labels", {"money", "money"}) ==
        "the checkpoint's /vocabulary/labels has \"money\" twice");
  CHECK(error_of_list("targets", {"bank", ""}) ==
        "the checkpoint's /vocabulary/targets has an empty text");
  CHECK(error_of_list("tokens", {"<pad>", "<unk>", ""}) ==
        "the checkpoint's /vocabulary/tokens has an empty text");
  CHECK(error_of_list("tokens", {"<pad>", "<unk>", "a", "a"}) ==
        "a vocabulary must not name \"a\" twice");
}

TEST_CASE("no change behind a right seal crashes what loads a model or resumes a run") {
  const TempDir dir;
  const auto file = dir.path() / "c.h5";
  Run run = after_one_update();
  run.step = 1;
  run.metrics = "{\"step\":1,\"split\":\"train\",\"loss\":0.7}\n";
  write_checkpoint(file, run.checkpoint(dir.path()));
  Mutations mutations(file);
  int refused = 0;
  for (int i = 0; i < Mutations::count(); ++i) {
    CAPTURE(i);
    mutations.write_next(file);
    refused += error_of<Error>([&] {
                 load_model(file);
                 const Checkpoint checkpoint = read_checkpoint(file);
                 restore_run(config_of(checkpoint, file), checkpoint, file);
               }) != "no error";
  }
  CHECK(refused > Mutations::count() / 10);
}
