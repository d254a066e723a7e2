#include "tests/train/config/parse.h"

using namespace qkv;
using namespace qkv::config_tests;
namespace fs = std::filesystem;

TEST_CASE("overrides set options of every type") {
  const Config c =
      overridden({"train.steps=7", "optimizer.lr=1", "optimizer.epsilon=1e-3", "model.scale=false",
                  "model.kind=decoder", "name=x", "task.test=\"a b\"", " task.valid = c d "});
  CHECK(c.train.steps == 7);
  CHECK(c.optimizer.lr == 1.0);
  CHECK(c.optimizer.epsilon == 1e-3);
  CHECK_FALSE(c.model.scale);
  CHECK(c.model.kind == ModelKind::decoder);
  CHECK(c.name == "x");
  // From the working folder.
  CHECK(c.task.test == std::filesystem::absolute("a b"));
  CHECK(c.task.valid == std::filesystem::absolute("c d"));
}

TEST_CASE("overrides take a bare word as text even where it is a number in TOML") {
  CHECK(overridden({"name=2024"}).name == "2024");
  CHECK(overridden({"task.test=a=b#c"}).task.test == std::filesystem::absolute("a=b#c"));
  CHECK(overridden({"task.test="}).task.test.empty());
}

TEST_CASE("an override's number may leave out the zero before its point") {
  const Config config = overridden({"optimizer.lr=.25", "task.test=.5"});
  CHECK(config.optimizer.lr == 0.25);
  CHECK(fs::path(config.task.test).filename() == ".5");
}

TEST_CASE("the last of several overrides counts") {
  CHECK(overridden({"train.steps=7", "train.steps=8"}).train.steps == 8);
}

TEST_CASE("an invalid override is named as it was written") {
  CHECK(override_error("train.steps=x") ==
        "--set train.steps=x: train.steps must be an integer, got the string \"x\"");
  CHECK(override_error("train.steps=0") == "--set train.steps=0: train.steps must be >= 1, got 0");
  CHECK(override_error("model.attention=x") ==
        "--set model.attention=x: model.attention must be one of \"learned\", \"parameter-free\", "
        "\"uniform\", got the string \"x\"");
  CHECK(override_error("train.stps=1") ==
        "--set train.stps=1: unknown key \"train.stps\" (did you mean \"train.steps\"?)");
  CHECK(override_error("train.steps") ==
        "--set train.steps: must have the form key=value, as in train.steps=500");
  CHECK(override_error("model.heads=5") ==
        "--set model.heads=5: model.heads must divide model.width (32), got 5");
  CHECK(override_error("name=a\xff") == "--set name=a\xff: not valid UTF-8");
  CHECK(contains(override_error("schedule={}"), "unknown key \"schedule\" (known here: schedule."));
  CHECK(contains(override_error("=1"), "unknown key \"\""));
}

TEST_CASE("an override cannot bring a second value") {
  for (const char* value : {"1\ntrain.batch=2", "1\rvalue2=2", "1\r\nvalue2=2", "1, 2"}) {
    CAPTURE(value);
    CHECK(contains(override_error("train.steps=" + std::string(value)), "must be an integer"));
  }
}

TEST_CASE("a config's path leads from its folder or the nearest above it that has the file") {
  const TempDir dir;
  const auto file = dir.write("a/b/c.toml",
                              "name = 'x'\ntask.train = 'd/t.tsv'\ntask.valid = '../no-such-file'\n"
                              "[[variant]]\nname = 'y'\ntask.train = 'only/here'\n");
  const fs::path root = dir.path();
  CHECK(read_config(file, none).base.task.train == root / "a/b/d/t.tsv");
  dir.write("d/t.tsv", "");
  CHECK(read_config(file, none).base.task.train == root / "d/t.tsv");
  dir.write("a/d/t.tsv", "");
  CHECK(read_config(file, none).base.task.train == root / "a/d/t.tsv");
  dir.write("a/only/here", "");
  const ConfigFile found = read_config(file, none);
  CHECK(found.base.task.valid == root / "a/no-such-file");
  CHECK(found.variants.at(0).config.task.train == root / "a/only/here");
  CHECK(found.base.task.test.empty());
}

TEST_CASE("an override that names data takes the place of the file's") {
  const std::string files = "name = 'x'\n[task]\ntrain = 'a'\nvalid = 'b'\ntest = 'c'\n",
                    split = "name = 'x'\n[task]\ndata = 'a'\n";
  const ConfigFile one = read(files, {"task.data=all.tsv"});
  CHECK(one.other_data);
  CHECK(one.base.task.data == fs::absolute("all.tsv"));
  CHECK(one.base.task.train + one.base.task.valid + one.base.task.test == "");
  const TaskOptions tested = read(files, {"task.test=own.tsv", "task.data=all.tsv"}).base.task;
  CHECK(tested.test == fs::absolute("own.tsv"));
  CHECK(tested.valid.empty());
  const TaskOptions trained = read(split, {"task.train=own.tsv"}).base.task;
  CHECK(trained.train == fs::absolute("own.tsv"));
  CHECK(trained.data.empty());
  CHECK_FALSE(read(files, {"train.steps=3"}).other_data);
  CHECK(contains(message_of([&] {
                   read(files, {"task.data=all.tsv", "task.train=own.tsv"});
                 }),
                 "--set task.train=own.tsv: task.train has no effect here"));
}

TEST_CASE("an override's path leads from the working folder") {
  const TempDir dir;
  dir.write("t.tsv", "");
  const auto file = dir.write("c.toml", "name = 'x'\ntask.train = 'y'\n");
  const std::vector<std::string> overrides{"task.train=t.tsv"};
  CHECK(read_config(file, overrides).base.task.train == fs::absolute("t.tsv"));
  Config config = parse("");
  apply_overrides(config, overrides);
  CHECK(config.task.train == fs::absolute("t.tsv"));
}

TEST_CASE("a portable config leads to the same files, relative to the nearest common folder") {
  const TempDir dir;
  const fs::path root = dir.path();
  Config config = parse("");
  config.task.train = dir.write("data/t.tsv", "");
  config.task.valid = dir.write("v.tsv", "");
  config.task.test = "/none/t.tsv";
  const Config stored = portable(config, root / "runs/a");
  CHECK(stored.task.train == "data/t.tsv");
  CHECK(stored.task.valid == "v.tsv");
  CHECK(stored.task.test == "/none/t.tsv");
  CHECK(stored.task.data.empty());
  Config read = stored;
  locate_files(read, root / "runs/a");
  CHECK(read == config);
  dir.write("runs/v.tsv", "");  // is in the way
  CHECK(portable(config, root / "runs/a").task.valid == root / "v.tsv");
}

TEST_CASE("configurations are compared option by option, without probes") {
  Config before = parse(""), now = parse("");
  now.probes.emplace_back().name = "p";
  CHECK(differing_options(before, now).empty());
  now.model.heads = 2;
  now.train.steps = 7;
  CHECK(differing_options(before, now) == "model.heads = 4 (now 2), train.steps = 500 (now 7)");
}

TEST_CASE("a failed override leaves the configuration as it was") {
  Config config = parse("");
  const Config before = config;
  const std::vector<std::string> overrides{"train.steps=7", "train.steps=x"};
  CHECK_THROWS_AS(apply_overrides(config, overrides), ConfigError);
  CHECK(config == before);
}

TEST_CASE("a file's overrides count before its options are checked together") {
  CHECK(read("name = 'x'", {"task.data=d"}).base.task.data == fs::absolute("d"));
}
