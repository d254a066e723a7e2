#include "train/exchange/exchange.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "train/loop/session.h"
#include "train/run/run.h"

namespace qkv::exchange_test {

namespace {

Run tiny_run() {
  Config config;
  config.name = "tiny";
  config.task.train = config.task.valid = QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";
  config.model.width = 8;
  config.model.layers = 1;
  config.model.heads = 2;
  return start_run(config);
}

/// A file of a run's export, with changed contents.
template <class Change>
std::string import_error(Change change) {
  const TempDir dir;
  Safetensors contents = exported(tiny_run().checkpoint({}), dir.path() / "c.h5", dir.path());
  change(contents);
  return error_of<Error>([&] { imported(contents, "x.safetensors"); });
}

}  // namespace

TEST_CASE("a model that was exported and imported has the same weights, words and figures") {
  const TempDir dir;
  const Run run = tiny_run();
  const auto file = dir.write(
      "x.safetensors",
      safetensors_bytes(exported(run.checkpoint(dir.path()), dir.path() / "c.h5", dir.path())));
  const Checkpoint checkpoint = imported(read_safetensors(file), file);
  CHECK(checkpoint.vocabulary == run.task->vocabularies());
  CHECK(config_of(checkpoint, file) == run.config);
  const LoadedModel model = model_of(checkpoint, file);
  const auto evaluated = [&](const Network& network) {
    return run.task->evaluate(network, Split::valid).loss;
  };
  CHECK(evaluated(*model.network) == evaluated(*run.network));
}

TEST_CASE("an imported run is at step 0, and resumes") {
  const TempDir dir;
  Run run = tiny_run();
  run.config.train.steps = 3;
  run.step = 2;
  const Safetensors contents =
      exported(run.checkpoint(dir.path()), dir.path() / "c.h5", dir.path());
  CHECK(contents.metadata.at("qkv.step") == "2");
  const RunFolder folder(dir.path() / "run");
  start_from(imported(contents, dir.path() / "x.safetensors"), run.config, folder);
  const auto file = find_checkpoint(folder.path());
  CHECK(file == folder.checkpoint(0));
  const Checkpoint checkpoint = read_valid_checkpoint(file);
  CHECK(checkpoint.step == 0);
  Run again = restore_run(config_of(checkpoint, file), checkpoint, file);
  Callback silent;
  resume(again, folder, silent);
  CHECK(again.step == 3);
  CHECK(error_of<UserError>([&] {
          start_from(checkpoint, run.config, folder);
        }).find("already holds a run") != std::string::npos);
}

TEST_CASE("an import without its metadata is refused with what is missing") {
  for (const char* key : {"qkv.config", "qkv.names", "qkv.vocabulary"}) {
    CAPTURE(key);
    CHECK(import_error([&](Safetensors& contents) {
            contents.metadata.erase(key);
          }).starts_with(fmt::format("x.safetensors: its metadata have no {}, which", key)));
  }
  for (const char* text : {"", "[]", "{\"tokens\":1}", "{\"tokens\":[1]}", "{\"tokens\":[[]]}"}) {
    CAPTURE(text);
    CHECK(
        import_error([&](Safetensors& contents) { contents.metadata["qkv.vocabulary"] = text; }) ==
        "x.safetensors: qkv.vocabulary in its metadata must be {\"tokens\": [TEXT, ...], "
        "...}");
  }
}

TEST_CASE("an import whose parameters are not those of its config is refused with each") {
  CHECK(import_error([](Safetensors& contents) {
          contents.tensors.erase("head.bias");
          contents.tensors["head.weight"] = Tensor::zeros({3, 8});
          contents.tensors["more"] = Tensor::zeros({1});
        }) ==
        "x.safetensors: does not hold the model that its config describes: [load_state] "
        "head.weight has "
        "shape (3, 8) instead of (2, 8); head.bias is missing; more is not a parameter of it");
  CHECK(import_error([](Safetensors& contents) {
          contents.tensors["head.bias"] =
              Tensor::from({0.0, std::numeric_limits<double>::quiet_NaN()}, {2});
        }) == "x.safetensors: head.bias holds a value that is not finite");
}

}  // namespace qkv::exchange_test
