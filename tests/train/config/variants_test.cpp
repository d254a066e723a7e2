#include "tests/train/config/parse.h"

using namespace qkv;
using namespace qkv::config_tests;
namespace fs = std::filesystem;

TEST_CASE("a variant is the base with its changes") {
  const ConfigFile file = read(smallest + R"(
model.width = 16
[[variant]]
name = "one head"
model.heads = 1
[[variant]]
name = "none"
[variant.train]
steps = 3
)");
  REQUIRE(file.variants.size() == 2);
  CHECK(file.base.model.heads == 4);
  Config expected = file.base;
  expected.name = "bank - one head";
  expected.model.heads = 1;
  CHECK(file.variants[0].name == "one head");
  CHECK(file.variants[0].config == expected);
  expected = file.base;
  expected.name = "bank - none";
  expected.train.steps = 3;
  CHECK(file.variants[1].config == expected);
}

TEST_CASE("overrides reach the variants, except in what a variant changes") {
  const ConfigFile file = read(smallest + "[[variant]]\nname = 'v'\nmodel.heads = 1\n",
                               {"model.heads=2", "train.steps=9"});
  CHECK(file.base.model.heads == 2);
  CHECK(file.variants[0].config.model.heads == 1);
  CHECK(file.variants[0].config.train.steps == 9);
}

TEST_CASE("a variant's configuration survives being written and read") {
  const ConfigFile file = read(smallest + "[[variant]]\nname = 'learned, 1 head'\n");
  const Config& config = file.variants[0].config;
  CHECK(parse_config(to_toml(config), "c.toml") == config);
}

TEST_CASE("errors in a variant are named with their lines") {
  const auto error = [](const std::string& variant) {
    return file_error(smallest + "[[variant]]\n" + variant);
  };
  CHECK(error("name = 'v'\nmodel.hads = 1") ==
        "c.toml:5: unknown key \"model.hads\" (did you mean \"model.heads\"?)");
  CHECK(error("name = 'v'\nmodel.heads = 0") ==
        "c.toml:5: model.heads must be from 1 to 256, got 0");
  CHECK(error("name = 'v'\nmodel.width = 30") ==
        "c.toml:5: model.heads must divide model.width (30), got 4");
}

TEST_CASE("an option that the base sets must have an effect in the base or a variant") {
  const std::string gru = "model.cell = 'gru'\n[[variant]]\nname = 'v'\n";
  CHECK(contains(file_error(smallest + gru), "c.toml:3: model.cell has no effect"));
  const ConfigFile file = read(smallest + gru + "model.kind = 'recurrent'");
  CHECK(file.variants[0].config.model.cell == CellKind::gru);
  CHECK(file.base.model.cell == Config().model.cell);  // without effect there
}

TEST_CASE("an option that a variant sets must have an effect in it") {
  CHECK(contains(file_error(smallest + "[[variant]]\nname = 'v'\nmodel.kind = 'static'\n"
                                       "model.heads = 2\n"),
                 "c.toml:6: model.heads has no effect"));
}

TEST_CASE("what is written of a variant is accepted as a config of its own") {
  const ConfigFile file = read(smallest +
                               "model.heads = 2\nmodel.dropout = 0.1\n[[variant]]\n"
                               "name = 'v'\nmodel.kind = 'static'\n");
  const Config& config = file.variants[0].config;
  CHECK(config.model.heads == Config().model.heads);
  CHECK(read(to_toml(config)).base == config);
}

TEST_CASE("every config of the project is accepted") {
  const std::vector<std::string> data{"task.data=d"};
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(QKV_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".toml") continue;
    CAPTURE(entry.path().string());
    const std::string name = entry.path().stem().string();
    const bool names_none = name == "coarsewsd" || name == "shakespeare";
    CHECK(message_of([&] { read_config(entry.path(), names_none ? data : none); }) == "no error");
  }
}

TEST_CASE("every variant needs a name of its own that can be a folder's") {
  const auto error = [](const std::string& variants) { return file_error(smallest + variants); };
  CHECK(error("[[variant]]\nseed = 2") ==
        "c.toml:3: a variant needs a name, as in name = \"one head\"");
  CHECK(error("[[variant]]\nname = ''") ==
        "c.toml:4: the variant's name must not be empty, got \"\"");
  CHECK(error("[[variant]]\nname = 1") ==
        "c.toml:4: the variant's name must be text in quotes, got the integer 1");
  CHECK(contains(error("[[variant]]\nname = 'a/b'"), "c.toml:4: the variant's name must not"));
  CHECK(error("[[variant]]\nname = 'a'\n[[variant]]\nname = 'a'") ==
        "c.toml:5: a variant with the name \"a\" came before; each needs its own");
}

TEST_CASE("variants must be tables of their own") {
  CHECK(file_error(smallest + "variant = 3") ==
        "c.toml:3: a variant begins with the line [[variant]], got the integer 3");
  CHECK(file_error(smallest + "[variant]\nname = 'a'") ==
        "c.toml:3: a variant begins with the line [[variant]], got a table");
}

TEST_CASE("a single configuration has no variants") {
  CHECK(error_of("[[variant]]\nname = 'a'") == "c.toml:3: a single configuration has no variants");
}

TEST_CASE("the bank experiment compares models of a sentence") {
  const ConfigFile file = read_config(QKV_SOURCE_DIR "/configs/bank.toml", none);
  CHECK(file.base.name == "bank");
  std::vector<std::string> names;
  for (const Variant& variant : file.variants) names.push_back(variant.name);
  CHECK(names == std::vector<std::string>{"static embedding", "parameter-free attention",
                                          "uniform attention", "learned, 1 head",
                                          "learned, 4 heads"});
}

TEST_CASE("the coarsewsd experiment asks for its files") {
  const std::string file = QKV_SOURCE_DIR "/configs/coarsewsd.toml";
  CHECK(contains(message_of([&] { read_config(file, none); }),
                 "task.train must name the training file"));
  const std::vector<std::string> overrides{"task.data=apple"};
  CHECK(read_config(file, overrides).base.task.data == fs::absolute("apple"));
}
