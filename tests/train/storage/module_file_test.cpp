#include "train/storage/module_file.h"

#include <doctest/doctest.h>

#include "layers/linear.h"
#include "layers/model.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "train/storage/checkpoint.h"

using namespace qkv;

namespace {

Linear layer(std::uint64_t seed, Index out = 2) {
  Linear linear(3, out);
  initialise(linear, seed);
  return linear;
}

}  // namespace

TEST_CASE("a module that is loaded has the parameters of the one that was saved, bit for bit") {
  const TempDir folder;
  const Linear saved = layer(1);
  save(folder.path() / "layer.h5", saved);
  Linear loaded = layer(2);
  CHECK(loaded.weight.value().values() != saved.weight.value().values());
  load(folder.path() / "layer.h5", loaded);
  CHECK(loaded.weight.value().values() == saved.weight.value().values());
}

TEST_CASE("a module is also loaded from a checkpoint that holds more") {
  const TempDir folder;
  const Linear trained = layer(1);
  Checkpoint run;
  run.step = 7;
  run.config = "seed = 1";
  run.model = state_of(trained);
  write_checkpoint(folder.path() / "run.h5", run);
  Linear loaded = layer(2);
  load(folder.path() / "run.h5", loaded);
  CHECK(loaded.weight.value().values() == trained.weight.value().values());
}

TEST_CASE("the parameters of another module are refused by the file's name, and change nothing") {
  const TempDir folder;
  const auto file = folder.path() / "layer.h5";
  save(file, layer(1));
  Linear wider = layer(2, 4);
  const auto before = wider.weight.value().values();
  CHECK(error_of<ValueError>([&] { load(file, wider); }) ==
        file.string() +
            ": [load_state] weight has shape (2, 3) instead of (4, 3); bias has shape (2,) instead "
            "of "
            "(4,)");
  CHECK(wider.weight.value().values() == before);
  CHECK_THROWS_AS(load(folder.path() / "none.h5", wider), UserError);
}
