#include "train/config/config.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/random.h"
#include "tests/train/config/parse.h"
#include "train/config/option_list.h"

namespace qkv::config_test {
using namespace qkv::config_tests;

TEST_CASE("an option that is not mentioned keeps its default") {
  Config expected;
  expected.name = "bank";
  expected.task.train = "train.tsv";
  CHECK(parse("") == expected);
}

TEST_CASE("every option of a configuration is read") {
  const Config c = parse_config(R"(
name = "a"
seed = 7
[task]
kind = "word-sense"
train = "1"
valid = "2"
test = "3"
data = "4"
valid_share = 0.25
min_count = 2
[model]
kind = "static"
width = 48
layers = 3
heads = 6
attention = "parameter-free"
scale = false
position = "none"
feed_forward = 0
dropout = 0.5
max_length = 9
[optimizer]
kind = "sgd"
lr = 1
momentum = 0.9
beta1 = 0.8
beta2 = 0.7
epsilon = 1e-6
weight_decay = 0.01
[schedule]
kind = "cosine"
warmup = 11
floor = 0.1
[train]
steps = 12
batch = 13
clip = 0
eval_every = 14
checkpoint_every = 15
keep = 16
)",
                                "c.toml");
  Config expected;
  expected.name = "a";
  expected.seed = 7;
  expected.task = {.kind = TaskKind::word_sense,
                   .train = "1",
                   .valid = "2",
                   .test = "3",
                   .data = "4",
                   .valid_share = 0.25,
                   .min_count = 2};
  expected.model = {.kind = ModelKind::static_embedding,
                    .width = 48,
                    .layers = 3,
                    .heads = 6,
                    .attention = AttentionKind::parameter_free,
                    .scale = false,
                    .position = PositionKind::none,
                    .feed_forward = 0,
                    .dropout = 0.5,
                    .max_length = 9};
  expected.optimizer = {.kind = OptimizerKind::sgd,
                        .lr = 1,
                        .momentum = 0.9,
                        .beta1 = 0.8,
                        .beta2 = 0.7,
                        .epsilon = 1e-6,
                        .weight_decay = 0.01};
  expected.schedule = {.kind = ScheduleKind::cosine, .warmup = 11, .floor = 0.1};
  expected.train = {
      .steps = 12, .batch = 13, .clip = 0, .eval_every = 14, .checkpoint_every = 15, .keep = 16};
  CHECK(c == expected);
  CHECK(parse_config(to_toml(expected), "c.toml") == expected);
}

TEST_CASE("a configuration survives being written and read, whatever its values") {
  const Random random(1, Purpose::testing);
  Config config = parse("");
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::uint64_t exponent = random.bits(3 * i) % 2046;
    const std::uint64_t bits = exponent << 52 | std::uint64_t{random.bits(3 * i + 1)} << 20 | 1;
    std::memcpy(&config.optimizer.lr, &bits, sizeof bits);
    config.seed = std::uint64_t{random.bits(3 * i + 2)} << 31;
    CHECK(parse_config(to_toml(config), "c.toml") == config);
  }
#ifdef _LIBCPP_VERSION  // toml++ reads numbers with its streams, which refuse subnormal ones
  constexpr double smallest = std::numeric_limits<double>::min();
#else
  constexpr double smallest = std::numeric_limits<double>::denorm_min();
#endif
  for (double lr : {smallest, 0.1, 1.0, 123456789.0, 1e22, std::numeric_limits<double>::max()}) {
    config.optimizer.lr = lr;
    CHECK(parse_config(to_toml(config), "c.toml") == config);
  }
}

TEST_CASE("text survives being written and read") {
  Config config = parse("");
  for (const char* text : {"say \"no\" # twice", "C:\\data\\train.tsv", "हिन्दी.tsv", "'", ""}) {
    config.task.valid = text;
    CHECK(parse_config(to_toml(config), "c.toml") == config);
  }
}

TEST_CASE("every option is written out and has help") {
  const std::string toml = to_toml(parse(""));
  Config defaults;
  for (const Option& option : options_of(defaults)) {
    CAPTURE(option.key);
    const std::string leaf(option.key.substr(option.key.rfind('.') + 1));
    CHECK(contains("\n" + toml, "\n" + leaf + " = "));
    CHECK_FALSE(option.help.empty());
    CHECK_FALSE(option.type.empty());
  }
}

TEST_CASE("help tells the values and the default of an option") {
  Config defaults;
  const auto options = options_of(defaults);
  const auto find = [&](std::string_view key) {
    return *std::ranges::find(options, key, &Option::key);
  };
  CHECK(find("model.attention").type == "learned | parameter-free | uniform");
  CHECK(find("model.kind").print() == "\"encoder\"");
  CHECK(find("model.width").type == "integer from 1 to 4096");
  CHECK(find("model.width").print() == "32");
  CHECK(find("model.dropout").type == "number in [0, 1)");
  CHECK(find("optimizer.lr").type == "number > 0");
  CHECK(find("optimizer.lr").print() == "0.001");
  CHECK(find("model.scale").type == "true | false");
  CHECK(find("task.train").type == "path");
}

TEST_CASE("an unknown key is named with its line and the nearest known key") {
  CHECK(error_of("\n[optimizer]\nlerning_rate = 1") ==
        "c.toml:5: unknown key \"optimizer.lerning_rate\" (did you mean \"optimizer.lr\"?)");
  CHECK(contains(error_of("model.wdith = 1"), "c.toml:3: unknown key \"model.wdith\""));
  CHECK(contains(error_of("model.wdith = 1"), "(did you mean \"model.width\"?)"));
  CHECK(contains(error_of("train.batch_size = 1"), "(did you mean \"train.batch\"?)"));
  CHECK(contains(error_of("[modle]"), "unknown key \"modle\" (did you mean \"model\"?)"));
  CHECK(contains(error_of("lr = 1"), "(did you mean \"optimizer.lr\"?)"));
}

TEST_CASE("an unknown key far from all others is answered with the keys of its table") {
  CHECK(error_of("schedule.qq = 1") ==
        "c.toml:3: unknown key \"schedule.qq\" (known here: schedule.kind, schedule.warmup, "
        "schedule.floor)");
  CHECK(error_of("xyz.abc = 1") ==
        "c.toml:3: unknown key \"xyz\" (known here: name, seed, task, model, optimizer, schedule, "
        "train)");
}

TEST_CASE("a quoted or empty key does not pass for an option or a table") {
  CHECK(contains(error_of("\"model.width\" = 1"), "unknown key \"\\\"model.width\\\"\""));
  CHECK(contains(error_of("[\"\"]"), "c.toml:3: unknown key"));
}

TEST_CASE("a value of the wrong type is named with the right type") {
  CHECK(error_of("train.steps = \"many\"") ==
        "c.toml:3: train.steps must be an integer, got the string \"many\"");
  CHECK(error_of("train.steps = 5.0") ==
        "c.toml:3: train.steps must be an integer, got the number 5.0");
  CHECK(error_of("train.steps = [1]") == "c.toml:3: train.steps must be an integer, got an array");
  CHECK(error_of("[train.steps]") == "c.toml:3: train.steps must be an integer, got a table");
  CHECK(error_of("train.steps = 2020-01-01") ==
        "c.toml:3: train.steps must be an integer, got a date");
  CHECK(error_of("optimizer.lr = true") == "c.toml:3: optimizer.lr must be a number, got true");
  CHECK(error_of("model.scale = 1") ==
        "c.toml:3: model.scale must be true or false, got the integer 1");
  CHECK(error_of("task.test = 1") ==
        "c.toml:3: task.test must be text in quotes, got the integer 1");
  CHECK(error_of("model = 1") == "c.toml:3: model must be a table, got the integer 1");
  CHECK(error_of("[[model]]") == "c.toml:3: model must be a table, got an array");
}

TEST_CASE("an unknown choice is answered with the choices") {
  CHECK(
      error_of("model.attention = \"uniforn\"") ==
      "c.toml:3: model.attention must be one of \"learned\", \"parameter-free\", \"uniform\", got "
      "the string \"uniforn\"");
  CHECK(
      error_of("model.attention = 1") ==
      "c.toml:3: model.attention must be one of \"learned\", \"parameter-free\", \"uniform\", got "
      "the integer 1");
}

TEST_CASE("values outside their bounds are refused") {
  CHECK(error_of("optimizer.lr = -1") == "c.toml:3: optimizer.lr must be > 0, got -1");
  CHECK(error_of("optimizer.lr = 0") == "c.toml:3: optimizer.lr must be > 0, got 0");
  CHECK(error_of("model.dropout = 1.0") == "c.toml:3: model.dropout must be in [0, 1), got 1");
  CHECK(error_of("model.width = 4097") == "c.toml:3: model.width must be from 1 to 4096, got 4097");
  CHECK(error_of("model.width = 9223372036854775807") ==
        "c.toml:3: model.width must be from 1 to 4096, got 9223372036854775807");
  CHECK(error_of("task.valid_share = 0.51") ==
        "c.toml:3: task.valid_share must be from 0 to 0.5, got 0.51");
  CHECK(error_of("train.steps = 0") == "c.toml:3: train.steps must be >= 1, got 0");
  CHECK(error_of("seed = -1") == "c.toml:3: seed must be >= 0, got -1");
  CHECK(contains(error_of("train.steps = 9223372036854775808"), "c.toml:3: not valid TOML"));
}

TEST_CASE("values on closed bounds are accepted") {
  const Config c = parse(
      "task.valid_share = 0.5\nmodel.width = 4096\nmodel.heads = 256\nmodel.dropout = 0\n"
      "model.feed_forward = 0\nseed = 9223372036854775807");
  CHECK(c.model.width == 4096);
  CHECK(c.task.valid_share == 0.5);
  CHECK(c.seed == 9223372036854775807u);
}

TEST_CASE("infinities and NaN are refused") {
  CHECK(error_of("optimizer.lr = inf") ==
        "c.toml:3: optimizer.lr must be a finite number, got inf");
  CHECK(error_of("train.clip = nan") == "c.toml:3: train.clip must be a finite number, got nan");
}

TEST_CASE("several errors are reported from the top") {
  CHECK(contains(error_of("train.steps = 0\nmodel.width = 0"), "c.toml:3: train.steps"));
}

TEST_CASE("heads must divide the width where attention has heads") {
  CHECK(error_of("model.heads = 3\nmodel.width = 32") ==
        "c.toml:4: model.heads must divide model.width (32), got 3");
  CHECK(error_of("model.heads = 3\nmodel.attention = \"uniform\"") ==
        "c.toml:3: model.heads must divide model.width (32), got 3");
  CHECK(error_of("model.heads = 3\nmodel.attention = \"parameter-free\"") == "no error");
  CHECK(error_of("model.heads = 3\nmodel.kind = \"static\"") == "no error");
  CHECK(error_of("model.heads = 3\nmodel.attention = \"parameter-free\"\n"
                 "model.kind = \"encoder-decoder\"\ntask.kind = \"translate\"") ==
        "c.toml:3: model.heads must divide model.width (32), got 3");
}

TEST_CASE("the tied output layer of a BERT reads the activation") {
  const std::string bert =
      smallest + "model.kind = 'bert'\nmodel.feed_forward = 0\nmodel.activation = 'gelu'\n";
  CHECK(contains(file_error(bert), "model.activation has no effect"));
  const std::string tied = "model.tied = true\ntask.kind = 'masked-language-model'";
  CHECK(message_of([&] { config_tests::read(bert + tied); }) == "no error");
}

TEST_CASE("a stored config with a frozen embedding freezes this part") {
  for (const char* parts : {"", "train.freeze = [\"head\"]\n"}) {
    const Config config =
        parse_config(smallest + "model.freeze_embedding = true\n" + parts, "old.h5");
    CHECK(config.train.freeze.back() == "embedding");
  }
}

TEST_CASE("a stored config may have options of earlier versions at their defaults") {
  const std::string stored =
      smallest + "model.norm_epsilon = 1e-05\nmodel.embedding_norm = false\n" +
      "model.token_types = 0\nmodel.pooling = \"mean\"\n" + "model.output = \"linear\"\n";
  CHECK(parse_config(stored, "old.h5") == parse_config(smallest, "new.h5"));
  CHECK(
      message_of([&] { parse_config(smallest + "model.token_types = 2\n", "old.h5"); }) ==
      "old.h5:3: model.token_types is an option of an earlier version and has the integer 2, which "
      "this version cannot reproduce; train the model again, or import a BERT again");
}

TEST_CASE("a stored encoder with the parts of a BERT is a BERT") {
  const std::string parts =
      "model.norm_epsilon = 1e-12\nmodel.embedding_norm = true\nmodel.token_types = 2\n"
      "model.pooling = \"first\"\ntask.kind = \"masked-language-model\"\n";
  const std::string encoder = smallest + "model.kind = \"encoder\"\n" + parts;
  const auto kind = [&](const std::string& more) {
    return parse_config(encoder + more, "old.h5").model.kind;
  };
  CHECK(kind("model.output = \"transformed\"\nmodel.tied = true\n") == ModelKind::bert);
  CHECK(kind("model.output = \"linear\"\nmodel.tied = false\n") == ModelKind::bert);
  for (const char* other : {"model.output = \"linear\"\nmodel.tied = true\n",
                            "model.output = \"transformed\"\nmodel.tied = false\n"})
    CHECK(contains(message_of([&] { kind(other); }), "import a BERT again"));
}

TEST_CASE("a stored config may have options that are values of others now") {
  const auto stored = [](const std::string& more) {
    return parse_config(smallest + more, "old.h5");
  };
  const TaskOptions fold = stored("task.folds = 5\ntask.fold = 2").task;
  CHECK((fold.fold == 2 && fold.folds == 5));
  CHECK(stored("task.folds = 0\ntask.fold = 1") == stored(""));
  CHECK(stored("model.embedding = \"learned\"\nmodel.embedding_file = \"v.txt\"")
            .model.embedding_file == "v.txt");
  CHECK(stored("model.embedding = \"one-hot\"\nmodel.embedding_file = \"\"") ==
        stored("model.embedding = \"one-hot\""));
  CHECK(stored("train.on_divergence = \"skip\"\ntrain.detect_anomaly = true").train.on_divergence ==
        OnDivergence::detect);
}

TEST_CASE("an embedding is a kind or the file that it starts from, and a fold a part of N") {
  Config config = overridden({"model.embedding=one-hot"});
  CHECK(config.model.embedding == EmbeddingKind::one_hot);
  apply_overrides(config, std::vector<std::string>{"model.embedding=/v.txt", "task.fold=2/5"});
  CHECK(config.model.embedding == EmbeddingKind::learned);
  CHECK(config.model.embedding_file == "/v.txt");
  CHECK(parse_config(to_toml(config), "c.toml") == config);
  apply_overrides(config, std::vector<std::string>{"model.embedding=learned", "task.fold="});
  CHECK((config.model.embedding_file.empty() && config.task.folds == 0));
  for (const char* fold : {"0/2", "3/2", "1/1", "1/1001", "2", "/2", "a/2"})
    CHECK(contains(override_error(fmt::format("task.fold={}", fold)), "part K of N"));
}

TEST_CASE("rotary positions need heads of even width") {
  const std::string rotary = "model.position = \"rotary\"\nmodel.width = 14\nmodel.heads = 2";
  CHECK(
      error_of(rotary) ==
      "c.toml:5: model.position \"rotary\" rotates pairs: the width of a head must be even, got 7");
  CHECK(error_of("model.heads = 7\n" + rotary.substr(0, rotary.rfind('\n'))) == "no error");
  CHECK(error_of("model.attention = \"parameter-free\"\n" + rotary) == "no error");
}

TEST_CASE(
    "what earlier versions trained to no effect is refused of a new run, and read of an old one") {
  const std::string uniform = "model.position = 'rotary'\nmodel.attention = 'uniform'",
                    free = "model.position = 'relative'\nmodel.attention = 'parameter-free'",
                    masked = "task.kind = 'masked-language-model'\nmodel.kind = 'decoder'";
  CHECK(file_error(smallest + uniform) ==
        "c.toml:4: model.position \"rotary\" has no effect on model.attention \"uniform\"; choose "
        "another, as \"none\"");
  CHECK(
      contains(file_error(smallest + free), "has no effect on model.attention \"parameter-free\""));
  CHECK(contains(file_error(smallest + masked), "predicts a token from both sides"));
  for (const auto& earlier : {uniform, free, masked}) CHECK(error_of(earlier) == "no error");
}

TEST_CASE("an option that no longer exists is read of a stored configuration alone") {
  const std::string earlier = smallest + "train.shard_optimizer = true";
  CHECK(parse_config(earlier, "c.toml") == parse_config(smallest, "c.toml"));
  CHECK(file_error(earlier) ==
        "c.toml:3: unknown key \"train.shard_optimizer\" (an option of an earlier version: nothing "
        "replaces it)");
  const std::string format = smallest + "task.format = 'files'";
  CHECK(parse_config(format, "c.toml") == parse_config(smallest, "c.toml"));
}

TEST_CASE("characters cannot be translated") {
  CHECK(error_of("task.kind = \"translate\"\nmodel.kind = \"encoder-decoder\"\n"
                 "task.tokenizer = \"char\"") ==
        "c.toml:5: task.kind \"translate\" has tokens that begin and end a text, which are no "
        "characters: task.tokenizer must be another than \"char\"");
}

TEST_CASE("training windows of a text must leave no token out") {
  const std::string text =
      "task.kind = \"language-model\"\nmodel.kind = \"decoder\"\nmodel.max_length = 64\n";
  CHECK(error_of(text + "task.stride = 65") ==
        "c.toml:6: task.stride must be at most model.max_length (64), so that training windows "
        "leave no token out, got 65");
  CHECK(error_of(text + "task.stride = 64") == "no error");
}

TEST_CASE("a new run demands its files and an imported model has none") {
  CHECK(file_error("name = 'x'") == "c.toml: task.train must name the training file");
  CHECK(message_of([] { config_tests::read("name = 'x'\ntask.data = 'd'"); }) == "no error");
  CHECK(message_of([] { parse_config("name = 'x'", "c.toml"); }) == "no error");
}

TEST_CASE("a run needs a name that can be a folder's") {
  CHECK(message_of([] { parse_config("task.train = 'x'", "c.toml"); }) ==
        "c.toml: name is missing; a run needs one, as in name = \"bank\"");
  for (const char* name : {"", "..", ".hidden", "a/b", "a\\\\b", "a\\nb", " a", "a ", "\\u007f"}) {
    CAPTURE(name);
    const std::string text = "task.train = 'x'\nname = \"" + std::string(name) + "\"";
    CHECK(contains(message_of([&] { parse_config(text, "c.toml"); }), "c.toml:2: name must not"));
  }
  const std::string longest(200, 'x');
  CHECK(overridden({"name=" + longest}).name == longest);
  CHECK(contains(override_error("name=" + longest + "x"), "must not be longer than 200 bytes"));
}

TEST_CASE("malformed TOML is refused with its line") {
  CHECK(contains(error_of("[model\n"), "c.toml:3: not valid TOML: "));
  CHECK(contains(error_of("seed = 1\nseed = 2"), "c.toml:4: not valid TOML: "));
  CHECK(contains(error_of("task.test = \"\xff\""), "c.toml:3: not valid TOML: "));
}

TEST_CASE("errors stay on one line whatever the file contains") {
  for (const char* more : {"\"a\\nb\" = 1", "\"a\\nb\" = 1\n\"a\\nb\" = 2", "seed = \"a\\nb\"",
                           "model.kind = \"\"\"a\nb\"\"\"", "task.train.x = \"\\r\""}) {
    CAPTURE(more);
    const std::string error = error_of(more);
    CHECK(error.starts_with("c.toml:"));
    CHECK(error.find_first_of("\r\n") == error.npos);
  }
  CHECK(override_error("train.steps=\n").find('\n') == std::string::npos);
}

TEST_CASE("long texts are cut in errors") {
  CHECK(error_of("seed = \"" + std::string(1000, 'x') + "\"").size() < 200);
  CHECK(error_of(std::string(1000, 'x') + " = 1").size() < 300);
}

TEST_CASE("windows line ends and a byte order mark are read") {
  CHECK(parse_config("\xef\xbb\xbfname = 'x'\r\ntask.train = 'y'\r\n", "c.toml").task.train == "y");
}

TEST_CASE("a file over 1 MiB is refused") {
  const std::string comment(1 << 20, '#');
  CHECK(file_error(comment + "#") == "c.toml: a configuration must not exceed 1 MiB");
  CHECK(contains(message_of([&] { parse_config(comment + "#", "x"); }), "x: a configuration"));
  CHECK(contains(file_error(comment), "c.toml: name is missing"));
}

TEST_CASE("deeply nested keys are refused, not fatal") {
  std::string key = "a";
  for (int i = 0; i < 9900; ++i) key += ".a";
  CHECK(contains(error_of(key + " = 1"), "c.toml:3: unknown key \"a\""));
  CHECK(contains(error_of(key + std::string(200, '.') + "a = 1"),
                 "c.toml: a configuration must not have more than"));
  CHECK(contains(error_of("seed = " + std::string(100000, '[')), "c.toml:3: not valid TOML"));
}

TEST_CASE("a missing file and a folder are refused by name") {
  TempDir dir;
  const std::string missing = (dir.path() / "no.toml").string();
  CHECK(message_of([&] { read_config(missing, none); }) == missing + ": there is no such file");
  CHECK(message_of([&] { read_config(dir.path(), none); }) ==
        dir.path().string() + ": is a folder; a configuration is a TOML file");
}

TEST_CASE("an option without effect is refused with its line and what it needs") {
  const auto error = [](const std::string& more) { return file_error(smallest + more); };
  CHECK(error("model.kind = 'static'\nmodel.dropout = 0.1") ==
        "c.toml:4: model.dropout has no effect here: it needs another model.kind than \"static\"; "
        "remove it");
  CHECK(error("task.data = 'x'") ==
        "c.toml:2: task.train has no effect here: it needs no task.data; "
        "remove it");
  CHECK(contains(error("task.valid_share = 0.2"), "it needs task.data without task.valid"));
  CHECK(contains(error("model.kind = 'recurrent'\nmodel.heads = 2"), "model.heads has no effect"));
  CHECK(contains(error("model.cell = 'gru'"), "it needs model.kind \"recurrent\""));
  CHECK(contains(error("model.attention = 'uniform'\nmodel.scale = false"), "model.scale has no"));
  CHECK(contains(error("schedule.floor = 0.1"), "schedule.floor has no effect"));
  CHECK(contains(error("optimizer.momentum = 0.9"), "optimizer.kind \"sgd\" or \"rmsprop\""));
  CHECK(contains(error("task.window = 3"), "task.kind \"static-embedding\""));
  CHECK(
      contains(error("model.kind = 'decoder'\nmodel.embedding_std = 0.1"), "model.embedding_std"));
  CHECK(contains(error("model.attention = 'uniform'\nmodel.heads = 2"), "model.heads has no"));
  CHECK(contains(error("model.feed_forward = 0\nmodel.activation = 'gelu'"), "model.activation"));
  CHECK(
      contains(error("model.kind = 'static'\ntask.word_dropout = 1"), "task.word_dropout has no"));
  const std::string vectors = "task.kind = 'static-embedding'\nmodel.kind = 'static'\n";
  CHECK(contains(error(vectors + "model.bias = false"), "model.bias has no effect"));
  CHECK(override_error("model.cell=gru") ==
        "--set model.cell=gru: model.cell has no effect here: it needs model.kind \"recurrent\"; "
        "remove it");
}

}  // namespace qkv::config_test
