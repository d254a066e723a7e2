#include "page/training.h"

#include <doctest/doctest.h>

#include "page/engine.h"
#include "tests/support/temp_dir.h"
#include "train/exchange/exchange.h"
#include "train/loop/trainer.h"
#include "train/loop/validation.h"
#include "train/run/run.h"
#include "train/storage/content_hash.h"

using namespace qkv;
using page::Engine;

namespace {

Json called(Engine& engine, const Json& request) {
  return Json::parse(engine.call(request.dump()));
}

std::string error_of(Engine& engine, const Json& request) {
  return called(engine, request).value("error", "no error");
}

Json step(Engine& engine, Index count) {
  return called(engine, object({{"call", "step"}, {"count", count}}));
}

Json train_request(const std::string& config) {
  return object({{"call", "train"}, {"config", config}});
}

/// A run that the program trained, and its last checkpoint.
struct Trained {
  Trained(const std::string& toml, const TempDir& dir, const std::string& name)
      : folder(dir.path() / name),
        run(start_run(read_config(dir.write(name + ".toml", toml), {}).base)) {
    folder.create();
    Callback callback;
    train(run, folder, callback);
    last = read_valid_checkpoint(folder.last());
  }

  RunFolder folder;
  Run run;
  Checkpoint last;
};

/// All parameters of a checkpoint, one after the other.
std::string bytes_of(const Checkpoint& checkpoint, const Run& run) {
  std::string bytes;
  for (const auto& [path, parameter] : run.parameters) {
    const auto elements = checkpoint.model.at(path).data<float>();
    bytes.append(reinterpret_cast<const char*>(elements.data()), elements.size_bytes());
  }
  return bytes;
}

/// Compares what the page has trained with what the program has.
void check_equal(Engine& engine, const Trained& trained) {
  const Json now = called(engine, object({{"call", "parameters"}}));
  CHECK(now["step"] == trained.last.step);
  CHECK(now["checksum"] == checksum_of(trained.last.model));
  CHECK(now["vocabulary"] == Json(trained.last.vocabulary));
  CHECK(engine.files().at("parameters") == bytes_of(trained.last, trained.run));
  CHECK(called(engine, object({{"call", "export"}})).empty());
  // A file at the root, from which no path is shorter than an absolute one.
  CHECK(engine.files().at("model.safetensors") ==
        safetensors_bytes(exported(trained.last, trained.folder.last(), "/")));
}

/// A config with a name and with absolute paths, by which the program and the page find the same
/// files.
std::string with_data(std::string toml) {
  toml = "name = \"small\"\n" + toml;
  const std::string name = "DATA";
  for (auto at = toml.find(name); at != toml.npos; at = toml.find(name, at))
    toml.replace(at, name.size(), QKV_SOURCE_DIR "/datasets");
  return toml;
}

const std::string classifier = with_data(R"(
seed = 3
task.kind = "classify"
task.train = "DATA/sentiment/train.tsv"
task.valid = "DATA/sentiment/valid.tsv"
task.word_dropout = 1
task.label_smoothing = 0.1
model.kind = "encoder"
model.width = 8
model.heads = 2
model.feed_forward = 12
model.dropout = 0.2
schedule.kind = "cosine"
schedule.warmup = 4
train.steps = 20
train.batch = 8
train.ema = 0.8
train.eval_every = 6
)");

const std::vector<std::string> configs = {classifier, with_data(R"(
task.kind = "tagging"
task.train = "DATA/tagging/train.conll"
task.valid = "DATA/tagging/valid.conll"
model.kind = "recurrent"
model.cell = "gru"
model.bidirectional = true
model.width = 8
optimizer.kind = "adamw"
train.steps = 12
train.batch = 4
train.accumulate = 3
train.clip_value = 0.01
)"),
                                          with_data(R"(
task.kind = "language-model"
task.data = "DATA/random/text.txt"
model.kind = "decoder"
model.width = 8
model.heads = 2
model.layers = 2
model.max_length = 16
model.position = "rotary"
model.tied = true
optimizer.kind = "muon"
schedule.kind = "linear"
schedule.warmup = 3
train.steps = 15
train.batch = 6
train.ema = 0.5
)"),
                                          with_data(R"(
task.kind = "static-embedding"
task.data = "DATA/random/text.txt"
task.window = 2
model.kind = "static"
model.width = 8
optimizer.kind = "sgd"
optimizer.lr = 0.1
train.steps = 10
train.batch = 16
)"),
                                          with_data(R"(
task.kind = "translate"
task.train = "DATA/sequences/reverse/train.tsv"
task.valid = "DATA/sequences/reverse/valid.tsv"
model.kind = "encoder-decoder"
model.width = 8
model.heads = 2
model.dropout = 0.1
train.steps = 10
train.batch = 8
train.eval_every = 4
)")};

}  // namespace

TEST_CASE("a training in the page has the bits of the program's") {
  const TempDir dir;
  Engine engine;
  for (const std::string& config : configs) {
    CAPTURE(config);
    const Trained trained(config, dir, fmt::format("run-{}", &config - configs.data()));
    const Json begun = called(engine, train_request(config));
    REQUIRE(begun.value("error", "") == "");
    CHECK(begun["parameters"] == parameter_count(*trained.run.network));
    CHECK(begun["steps"] == trained.last.step);
    CHECK(begun["examples"]["train"] == trained.run.task->size(Split::train));
    CHECK(begun["labels"] == Json(trained.run.task->labels()));
    CHECK(begun["tokens"] == trained.run.task->vocabulary().size());
    for (bool finished = false; !finished;) {
      const Json done = step(engine, 4);
      REQUIRE(done.value("error", "") == "");
      finished = done["finished"];
    }
    check_equal(engine, trained);
  }
}

TEST_CASE("the page evaluates the model that the program evaluates and saves") {
  const TempDir dir;
  Engine engine;
  const Json begun = called(engine, train_request(classifier));
  CHECK(begun["score_name"] == "accuracy");
  const Json request = object({{"call", "evaluate"}, {"split", "valid"}});
  const Json before = called(engine, request);
  step(engine, 20);
  const Json after = called(engine, request);
  CHECK(before["loss"] != after["loss"]);

  const Trained trained(classifier, dir, "run");
  const LoadedModel model = model_of(trained.last, trained.folder.last());
  const Evaluation valid =
      model.task->evaluate(*model.network, std::filesystem::path(trained.run.config.task.valid));
  CHECK(after["loss"] == valid.loss);
  CHECK(after["accuracy"] == valid.metric("accuracy"));
  CHECK(after["labels"] == Json(trained.run.task->labels()));
  // Averages are evaluated, the parameters themselves are trained on.
  CHECK(called(engine, request)["loss"] == after["loss"]);
  CHECK(error_of(engine, object({{"call", "evaluate"}, {"split", "test"}})) ==
        "the config names no test data");
  CHECK(error_of(engine, object({{"call", "evaluate"}, {"split", "all"}})) ==
        "\"split\" of the request is \"all\"; it must be train, valid or test");
}

TEST_CASE("a model that the page trains is loaded under a name, before its first step, too") {
  Engine engine;
  called(engine, train_request(classifier));
  for (const Index steps : {0, 2}) {
    CAPTURE(steps);
    step(engine, steps);
    Json request = called(engine, object({{"call", "parameters"}}));
    CHECK(request["step"] == steps);
    request["call"] = "load";
    request["model"] = "live";
    CHECK(called(engine, request).value("error", "") == "");
    CHECK(called(engine, object({{"call", "predict"}, {"model", "live"}, {"text", "a bad plot"}}))
              .value("error", "") == "");
  }
}

TEST_CASE("steps in the page end where the program ends") {
  Engine engine;
  called(engine, train_request(classifier));
  Json done = step(engine, 0);
  CHECK(done["step"] == 0);
  CHECK(done["losses"].empty());
  CHECK(done["finished"] == false);
  done = step(engine, 3);
  CHECK(done["losses"].size() == 3);
  CHECK(done["gradient_norm"] > 0.0);
  // The third step of a warmup of four to the default rate.
  CHECK(done["learning_rate"].get<double>() ==
        doctest::Approx(OptimizerOptions().lr * 3 / 4).epsilon(1e-9));
  done = step(engine, 1000);
  CHECK(done["losses"].size() == 17);
  CHECK(done["finished"] == true);
  const Json parameters = called(engine, object({{"call", "parameters"}}));
  done = step(engine, 1);
  CHECK(done["step"] == 20);
  CHECK(done["losses"].empty());
  CHECK(done["finished"] == true);
  CHECK(called(engine, object({{"call", "parameters"}})) == parameters);
}

TEST_CASE("early stopping ends a training in the page at the program's step") {
  const TempDir dir;
  std::string config = classifier;
  config.replace(config.find("steps = 20"), 10,
                 "steps = 400\ntrain.patience = 2\ntrain.select = \"log_loss\"");
  const Trained trained(config, dir, "run");
  REQUIRE(trained.last.step < 400);
  Engine engine;
  called(engine, train_request(config));
  const Json done = step(engine, 400);
  CHECK(done["finished"] == true);
  CHECK(done["step"] == trained.last.step);
  check_equal(engine, trained);
}

TEST_CASE("errors of a training in the page are the program's") {
  Engine engine;
  CHECK(error_of(engine, object({{"call", "step"}, {"count", 1}})) ==
        "there is no training; call \"train\" first");
  CHECK(error_of(engine, train_request("name = \"a\"\n[model]\nwidht = 8\n")) ==
        "page:3: unknown key \"model.widht\" (did you mean \"model.width\"?)");
  CHECK(error_of(engine, train_request(classifier + "[[variant]]\nname = \"a\"\n"))
            .ends_with("a single configuration has no variants"));
  CHECK(error_of(engine,
                 train_request(with_data("[task]\nkind = \"classify\"\ntrain = \"none.tsv\"\n")))
            .starts_with("none.tsv: "));
  CHECK(error_of(engine, train_request(with_data("[task]\nkind = \"classify\"\nwindow = 2\n"
                                                 "train = \"DATA/sentiment/train.tsv\"\n")))
            .starts_with("page:4: task.window"));

  // A config that cannot be trained leaves the training before it as it is.
  REQUIRE(called(engine, train_request(classifier)).value("error", "") == "");
  step(engine, 1);
  CHECK(error_of(engine, train_request("")) != "no error");
  CHECK(step(engine, 1)["step"] == 2);
}

TEST_CASE("a training in the page that diverges is an error with the program's advice") {
  Engine engine;
  const std::string config = with_data(R"(
task.kind = "classify"
task.train = "DATA/sentiment/train.tsv"
model.width = 8
model.norm = "none"
optimizer.kind = "sgd"
optimizer.lr = 1e6
train.clip = 0
)");
  REQUIRE(called(engine, train_request(config)).value("error", "") == "");
  const std::string error = error_of(engine, object({{"call", "step"}, {"count", 100}}));
  CHECK(error.find("lower optimizer.lr") != std::string::npos);
}

TEST_CASE("what a training has read is used again where the next one reads the same files alike") {
  const TempDir dir;
  const std::string data = dir.write("data.tsv", "");
  const auto write = [&](const std::string& word) {
    dir.write("data.tsv", "good\ta " + word + " plot\nbad\ta poor plot\ngood\tgood acting\n");
  };
  const auto config = [&](const std::string& option) {
    return option + "\nname = \"small\"\ntask.kind = \"classify\"\ntask.train = \"" + data +
           "\"\nmodel.width = 8\nmodel.heads = 2\ntrain.steps = 3\ntrain.batch = 3\n";
  };
  int runs = 0;
  const auto by_program = [&](const std::string& option) {
    const Trained trained(config(option), dir, fmt::format("run-{}", ++runs));
    return Json(checksum_of(trained.last.model));
  };
  Engine engine;
  const auto in_page = [&](const std::string& option, bool same_files) {
    Json request = train_request(config(option));
    request["same_files"] = same_files;
    REQUIRE(called(engine, request).value("error", "") == "");
    step(engine, 3);
    return called(engine, object({{"call", "parameters"}}))["checksum"];
  };
  const std::string other_model = "model.position = \"none\"", other_task = "task.word_dropout = 1";
  CHECK(
      error_of(engine, object({{"call", "train"}, {"config", config("")}, {"same_files", true}})) ==
      "there is no training; call \"train\" first");
  write("fine");
  const Json fine = by_program(other_model);
  in_page("", false);
  write("great");
  CHECK(in_page(other_model, true) == fine);
  CHECK(in_page(other_task, true) == by_program(other_task));
  CHECK(in_page(other_model, false) == by_program(other_model));
  CHECK(by_program(other_model) != fine);
}
