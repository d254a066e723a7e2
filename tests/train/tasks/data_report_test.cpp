#include <doctest/doctest.h>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/run/run.h"

namespace qkv::data_report_test {

namespace {

class Messages : public ReadCallback {
 public:
  void on_message(const std::string& line) override { lines.push_back(line); }
  std::vector<std::string> lines;
};

Config config_of(TaskKind kind, const std::filesystem::path& train) {
  return tiny_config(kind, train, 4);
}

}  // namespace

TEST_CASE("long sentences are cut with a count: around their word, else at their end") {
  const TempDir dir;
  Messages messages;
  Config config = config_of(TaskKind::word_sense,
                            dir.write("s", "a\t5\tone two three four five bank\nb\t0\tbank\n"));
  config.task.truncate = true;
  const auto senses = make_task(config, messages);
  CHECK(messages.lines ==
        std::vector<std::string>{config.task.train +
                                 ": 1 of 2 sentences cut to model.max_length = 4 tokens"});
  CHECK(senses->tokens(0) == 4);
  const LabelledText line = senses->read_line(tsv_row("a\t5\tone two three four five bank"));
  CHECK(line.sentence.words == std::vector<std::string>{"three", "four", "five", "bank"});
  CHECK(line.index == 3);

  config = config_of(TaskKind::classify, dir.write("c", "a\t1 2 3 4 5\nb\tx\n"));
  config.task.truncate = true;
  const auto classes = make_task(config);
  CHECK(classes->read("1 2 3 4 5").words == std::vector<std::string>{"1", "2", "3", "4"});

  config = config_of(TaskKind::translate, dir.write("t", "1 2 3 4 5\t1 2 3 4 5\n"));
  config.task.truncate = true;
  CHECK(make_task(config)->tokens(0) == 4 + 1 + 3);

  config =
      config_of(TaskKind::coreference, dir.write("p", "0\t1\tdog it\n0\t7\tdog 1 2 3 4 5 6 it\n"));
  config.task.truncate = true;
  messages.lines.clear();
  CHECK(make_task(config, messages)->size(Split::train) == 1);
  REQUIRE(messages.lines.size() == 2);
  CHECK(messages.lines[1] == config.task.train +
                                 ": 1 of 2 examples left out: an antecedent beyond "
                                 "model.max_length");
}

TEST_CASE("unknown labels are an error, or left out with their names and counts") {
  const TempDir dir;
  Messages messages;
  Config config = config_of(TaskKind::classify, dir.write("f", "a\tx\nb\ty\n"));
  config.task.test = dir.write("g", "a\tx\nc\ty\nc\tz\nd\tz\n").string();
  CHECK(error_of<UserError>([&] {
          make_task(config);
        }).ends_with("g:2: unknown label \"c\"; the training data has: a, b"));
  config.task.unknown_labels = UnknownLabels::skip;
  const auto task = make_task(config, messages);
  CHECK(task->size(Split::test) == 1);
  CHECK(messages.lines ==
        std::vector<std::string>{
            config.task.test + ": 2 of 4 examples left out: unknown label \"c\"",
            config.task.test + ": 1 of 4 examples left out: unknown label \"d\""});
}

TEST_CASE("an example whose label occurs once is for training, however the file is split") {
  const TempDir dir;
  std::string text = "rare\tx\n";
  for (int i = 0; i < 30; ++i) text += fmt::format("{}\tw{}\n", i % 2 ? "odd" : "even", i);
  Config config = config_of(TaskKind::classify, "");
  config.task.data = dir.write("f", text).string();
  config.task.valid_share = 0.4;
  for (config.seed = 1; config.seed <= 8; ++config.seed)
    CHECK(make_task(config)->vocabularies().at("labels").size() == 3);
}

TEST_CASE("examples of a test file never train, also where training has none of their label") {
  const TempDir dir;
  Config config = config_of(TaskKind::classify, "");
  config.task.data = dir.write("f", "a\tx\na\ty\na\tz\nb\tx\nb\ty\n").string();
  config.task.test = dir.write("g", "a\tx\nc\ty\nc\tz\n").string();
  config.task.unknown_labels = UnknownLabels::skip;
  const auto task = make_task(config);
  CHECK(task->vocabularies().at("labels") == std::vector<std::string>{"a", "b"});
  CHECK(task->size(Split::train) + task->size(Split::valid) == 5);
  CHECK(task->size(Split::test) == 1);
}

TEST_CASE("tokens and case are as the options say, else as suits the task") {
  const TempDir dir;
  const auto tokens = [&](TaskKind kind, std::string_view text, auto change) {
    Config config = config_of(kind, dir.write("f", text));
    config.model.max_length = 30;
    if (kind == TaskKind::language_model) {
      config.model.kind = ModelKind::decoder;
      config.model.max_length = 2;
    }
    change(config.task);
    auto list = make_task(config)->vocabularies().at("tokens");
    list.erase(list.begin(), list.begin() + 2);
    return list;
  };
  using Tokens = std::vector<std::string>;
  constexpr std::string_view classes = "a\tNo, no\nb\tYes\n";
  const auto same = [](TaskOptions&) {};
  CHECK(tokens(TaskKind::classify, classes, same) == Tokens{"no", ",", "yes"});
  CHECK(tokens(TaskKind::classify, classes, [](TaskOptions& t) { t.lower_case = false; }) ==
        Tokens{",", "No", "Yes", "no"});
  CHECK(tokens(TaskKind::classify, classes, [](TaskOptions& t) {
          t.tokenizer = TokenizerKind::character;
        }) == Tokens{"n", "o", " ", ",", "e", "s", "y"});
  CHECK(tokens(TaskKind::language_model, "AbA\n", same) == Tokens{"A", "\n", "b"});
  CHECK(tokens(TaskKind::language_model, "AbA\n", [](TaskOptions& t) { t.lower_case = true; }) ==
        Tokens{"a", "\n", "b"});
  CHECK(tokens(TaskKind::language_model, "To be\nto be\n", [](TaskOptions& t) {
          t.tokenizer = TokenizerKind::word;
        }) == Tokens{"be", "To", "to"});
  const auto pairs = tokens(TaskKind::classify, classes, [](TaskOptions& t) {
    t.tokenizer = TokenizerKind::bpe;
    t.merges = 1;
  });
  CHECK(pairs.size() == 256 + 7 + 1);
}

TEST_CASE("a word is found in a sentence by its tokens") {
  const TempDir dir;
  Config config = config_of(TaskKind::classify, dir.write("f", "a\tThe bank\nb\triver bank\n"));
  config.model.max_length = 40;
  const auto found = [&](std::string_view text, const std::string& word) {
    const auto task = make_task(config);
    return task->occurrences(task->read(text), word);
  };
  CHECK(found("The bank, a bank", "Bank,") == std::vector<Index>{1, 4});
  CHECK(found("The bank", "ban").empty());
  for (const auto kind : {TokenizerKind::bpe, TokenizerKind::character}) {
    config.task.tokenizer = kind;
    CHECK(found("The bank, a bank", "Bank").size() == 2);
    CHECK(found("The bank", "river").empty());
  }
}

}  // namespace qkv::data_report_test
