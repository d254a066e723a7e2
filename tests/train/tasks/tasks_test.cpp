#include <doctest/doctest.h>

#include <cmath>
#include <span>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/config/option_list.h"
#include "train/run/run.h"
#include "train/tasks/chrf.h"

namespace qkv::tasks_test {

namespace {

Config config_of(TaskKind task, const std::filesystem::path& train) {
  return tiny_config(task, train, 6);
}

/// The error of reading `text` as the data of a task, from the file's name on.
std::string data_error(TaskKind task, std::string_view text) {
  const TempDir dir;
  const auto file = dir.write("f.tsv", text);
  const std::string error = error_of<UserError>([&] { make_task(config_of(task, file)); });
  const auto name = error.find("f.tsv");
  return name == error.npos ? error : error.substr(name);
}

/// Messages while a task reads its data.
class Said : public ReadCallback {
 public:
  void on_message(const std::string& line) override { lines.push_back(line); }
  std::vector<std::string> lines;
};

double chrf(std::string_view output, std::string_view reference) {
  ChrF score;
  score.add(output, reference);
  return score.value();
}

}  // namespace

TEST_CASE("classify refuses invalid data and names file and line") {
  const auto error = [](std::string_view text) { return data_error(TaskKind::classify, text); };
  CHECK(error("good\tfine\nbad\n") == "f.tsv:2: must be label<TAB>text, got 1 field");
  CHECK(error("\tfine\n") == "f.tsv:1: the label is empty");
  CHECK(error("good\t \n") == "f.tsv:1: the sentence is empty");
  CHECK(error("good\ta\ngood\tb\n") == "f.tsv: there is only the label good; there must be two");
  CHECK(error("good\ta\nbad\ta b c d e f g\n") ==
        "f.tsv:2: the sentence has 7 words, more than model.max_length = 6; "
        "task.truncate=true cuts it");
}

TEST_CASE("task.word finds the word of sentences without an index column") {
  const TempDir dir;
  const auto file = dir.write("f.tsv",
                              "season\tIn Spring, the spring.\nwater\ta (spring) dried\n"
                              "water\toffspring and spring\n");
  const std::string before[] = {"in", "a (", "offspring and"};
  for (const TokenizerKind kind : {TokenizerKind::word, TokenizerKind::bpe}) {
    Config config = config_of(TaskKind::word_sense, file);
    config.task.word = "Spring";
    config.task.tokenizer = kind;
    config.model.max_length = 64;
    const auto task = make_task(config);
    REQUIRE(task->size(Split::train) == 3);
    for (Index i = 0; i < 3; ++i) {
      const LabelledText example = task->example(Split::train, i);
      const std::string text = task->tokenizer().joined(
          std::span(example.sentence.words).first(static_cast<std::size_t>(example.index)));
      CHECK(text.substr(text.starts_with(' ')) == before[i]);
    }
  }
}

TEST_CASE("a sentence without task.word is named by file and line") {
  const TempDir dir;
  Config config = config_of(TaskKind::word_sense,
                            dir.write("f.tsv", "season\tin spring\nwater\tthe springs\n"));
  config.task.word = "spring";
  const std::string error = error_of<UserError>([&] { make_task(config); });
  CHECK(error.ends_with("f.tsv:2: the sentence has no word \"spring\" (task.word)"));
}

TEST_CASE("a header in any order, or task.columns, says which column is the label") {
  const TempDir dir;
  Config config =
      config_of(TaskKind::classify, dir.write("f.csv", "review,sentiment\na b,good\nc,bad\n"));
  CHECK(make_task(config)->vocabularies().at("labels") == std::vector<std::string>{"bad", "good"});
  config = config_of(TaskKind::classify, dir.write("f.csv", "klasse,kommentar\ngood,a b\nbad,c\n"));
  config.task.columns = {"kommentar", "klasse"};
  CHECK(make_task(config)->vocabularies().at("labels") == std::vector<std::string>{"a b", "c"});
  config.task.columns = {"klasse", "kommentar"};
  const auto task = make_task(config);
  CHECK(task->vocabularies().at("labels") == std::vector<std::string>{"bad", "good"});
  ReadCallback silent;
  std::vector<std::string> texts;
  task->for_each_line(config.task.train, silent, [&](const TsvRow& row) {
    const LabelledText line = task->read_line(row);
    texts.push_back(line.label + ": " + line.text);
  });
  CHECK(texts == std::vector<std::string>{"good: a b", "bad: c"});
}

TEST_CASE("task.word is found in the column that a header or task.columns names") {
  const TempDir dir;
  for (const std::string header : {"sentence,sense", "satz,bedeutung"}) {
    Config config = config_of(TaskKind::word_sense,
                              dir.write("f.csv", header + "\nin spring,season\na spring,water\n"));
    config.task.word = "spring";
    if (header == "satz,bedeutung") config.task.columns = {"bedeutung", "satz"};
    const auto task = make_task(config);
    CHECK(task->vocabularies().at("labels") == std::vector<std::string>{"season", "water"});
    CHECK(task->example(Split::train, 0).index == 1);
    ReadCallback silent;
    std::vector<std::string> texts;
    task->for_each_line(config.task.train, silent,
                        [&](const TsvRow& row) { texts.push_back(row.fields.back()); });
    CHECK(texts == std::vector<std::string>{"in spring", "a spring"});
  }
}

TEST_CASE("the labels are counted, with a warning where most of many occur once") {
  const TempDir dir;
  const auto summary = [&](const std::string& text) {
    return make_task(config_of(TaskKind::classify, dir.write("f.tsv", text)))->label_summary();
  };
  CHECK(summary("bad\ta\ngood\tb\ngood\tc\n") == "2 labels: good 2, bad 1");
  std::string other_order;
  for (int i = 0; i < 30; ++i) other_order += fmt::format("text {}\tgood\n", i < 26 ? i : 26);
  CHECK(
      summary(other_order)
          .starts_with(
              "30 examples, 27 labels, most of them once: is the column of labels the right one?"));
  std::string many;
  for (int i = 0; i < 40; ++i) many += fmt::format("{:02}\ta\n", i % 20);
  CHECK(summary(many) ==
        "20 labels: 00 2, 01 2, 02 2, 03 2, 04 2, 05 2, 06 2, 07 2, 08 2, 09 2, ...");
}

TEST_CASE("an evaluation counts the tokens that the vocabulary does not have") {
  const TempDir dir;
  Config config = config_of(TaskKind::classify, dir.write("f.tsv", "good\ta b\nbad\tc\n"));
  config.task.test = dir.write("t.tsv", "good\ta x\nbad\ty\n").string();
  const Run run = start_run(config);
  const TokenCount tokens = run.task->evaluate(*run.network, Split::test).tokens;
  CHECK(tokens.all == 3);
  CHECK(tokens.unknown == 2);
}

TEST_CASE("a language model says how many tokens of a text are unknown") {
  const TempDir dir;
  Config config = config_of(TaskKind::language_model, dir.write("f.txt", "abcabcabc"));
  config.model.kind = ModelKind::decoder;
  config.task.valid = dir.write("v.txt", "abxaby").string();
  Said said;
  make_task(config, said);
  CHECK(said.lines ==
        std::vector<std::string>{config.task.valid + ": 2 of 7 tokens are not in the vocabulary"});
}

TEST_CASE("coreference refuses invalid data and names file and line") {
  const auto error = [](std::string_view text) { return data_error(TaskKind::coreference, text); };
  CHECK(error("0\ta b\n") ==
        "f.tsv:1: must be antecedent_index<TAB>pronoun_index<TAB>sentence, got 2 fields");
  CHECK(error("0\t2\ta b\n") ==
        "f.tsv:1: the index must be less than the sentence's 2 words, got 2");
  CHECK(error("-1\t1\ta b\n") == "f.tsv:1: the index must be an integer from 0, got \"-1\"");
  CHECK(error("1\t1\ta b\n") == "f.tsv:1: a word cannot be its own antecedent: both indices are 1");
}

TEST_CASE("translate refuses invalid data and names file and line") {
  const auto error = [](std::string_view text) { return data_error(TaskKind::translate, text); };
  CHECK(error("a b\n") == "f.tsv:1: must be source<TAB>target, got 1 field");
  CHECK(error("\tb\n") == "f.tsv:1: the source is empty");
  CHECK(error("b\t\n") == "f.tsv:1: the target is empty");
  CHECK(error("a\ta b c d e f\n") ==
        "f.tsv:1: the sentence has 7 words, more than model.max_length = 6; "
        "task.truncate=true cuts it");
}

TEST_CASE("a line is read as in training, and with fewer columns") {
  const TempDir dir;
  const auto task = [&](TaskKind kind, std::string_view text) {
    return make_task(config_of(kind, dir.write("f.tsv", text)));
  };
  const auto senses = task(TaskKind::word_sense, "money\t1\tmoney bank\nriver\t0\tbank\n");
  const LabelledText sense = senses->read_line(tsv_row("river\t2\tAh, the bank"));
  CHECK(sense.sentence.words == std::vector<std::string>{"ah", ",", "the", "bank"});
  CHECK(sense.index == 3);
  CHECK(sense.label == "river");
  CHECK(sense.answer == 1);
  CHECK(sense.antecedent == -1);
  CHECK(senses->read_line(tsv_row("sand\tthe bank")).answer == -1);
  CHECK(senses->read_line(tsv_row("the bank")).index == 1);
  const auto pronouns = task(TaskKind::coreference, "0\t2\tdog saw it\n");
  const LabelledText pronoun = pronouns->read_line(tsv_row("0\t1\tcats it"));
  CHECK(pronoun.index == 1);
  CHECK(pronoun.answer == 0);
  CHECK(pronoun.antecedent == 0);
  CHECK(pronoun.label.empty());
  const auto pairs = task(TaskKind::translate, "a b\tx y\n");
  CHECK(pairs->read_line(tsv_row("b\tx")).text == "b");
  CHECK(error_of<UserError>([&] { senses->read_line(tsv_row("river\tx\tbank")); }) ==
        "the index must be an integer from 0, got \"x\"");
}

TEST_CASE("coreference never chooses the pronoun itself or padding") {
  const TempDir dir;
  const auto file = dir.write("f.tsv", "0\t2\tdog saw it\n1\t4\tthe cat and then it slept\n");
  const Run run = start_run(config_of(TaskKind::coreference, file));
  const auto predictions = run.task->predict(*run.network, "It saw the dog");
  REQUIRE(predictions.size() == 1);
  CHECK(predictions[0].index == 0);
  CHECK(predictions[0].label != "it");
  Context context;
  const std::vector<Index> both = {0, 1};
  CHECK(std::isfinite(run.task->loss(*run.network, both, context).value.item()));
  CHECK(error_of<UserError>([&] { run.task->predict(*run.network, "the dog"); }) ==
        "\"the dog\" has none of the words that the model was trained on: it");
  CHECK(error_of<UserError>([&] { run.task->predict(*run.network, "it"); }) ==
        "the sentence has no other word that the pronoun could refer to");
}

TEST_CASE("a class is predicted for a text as a whole") {
  const TempDir dir;
  const auto file = dir.write("f.tsv", "good\tFine, really!\nbad\tno\n");
  const Run run = start_run(config_of(TaskKind::classify, file));
  CHECK(run.task->vocabulary().id("fine") != Vocabulary::unknown);
  CHECK(run.task->vocabularies().at("labels") == std::vector<std::string>{"bad", "good"});
  const auto predictions = run.task->predict(*run.network, "fine");
  REQUIRE(predictions.size() == 1);
  CHECK_FALSE(predictions[0].index.has_value());
  CHECK(predictions[0].probability >= 0.5);
}

TEST_CASE("a translation ends at the longest length a model allows") {
  const TempDir dir;
  const Run run = start_run(config_of(TaskKind::translate, dir.write("f.tsv", "a b\tx y\n")));
  const auto prediction = run.task->predict(*run.network, "a b").at(0);
  CHECK(prediction.is_output);
  CHECK(std::ranges::count(prediction.label, ' ') < 6);
  const Evaluation evaluation = run.task->evaluate(*run.network, Split::train);
  CHECK(evaluation.count == 1);
  CHECK(evaluation.metric("chrf") <= 1);
  CHECK(evaluation.metric("exact_match") == evaluation.score);
}

TEST_CASE("one file is divided among the splits, each example once") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 20; ++i) text += fmt::format("{}\tw{}\n", i % 2 ? "odd" : "even", i);
  Config config = config_of(TaskKind::classify, "");
  config.task.data = dir.write("f.tsv", text).string();
  config.task.valid_share = 0.2;
  config.task.test_share = 0.1;
  const auto task = make_task(config);
  CHECK(task->size(Split::train) == 14);
  CHECK(task->size(Split::valid) == 4);
  CHECK(task->size(Split::test) == 2);
  CHECK(task->vocabulary().size() == 16);
  CHECK(task->tokens(0) == 1);
}

TEST_CASE("folds test each training example once, with equal shares of every label") {
  const TempDir dir;
  std::string text = "rare\tonly\n";
  for (int i = 0; i < 23; ++i) text += fmt::format("{}\tw{}\n", i % 3 ? "many" : "few", i);
  Config config = config_of(TaskKind::classify, dir.write("f.tsv", text));
  config.task.test = dir.write("test.tsv", "unseen\tnever read as an example\n").string();
  config.task.folds = 4;
  std::map<std::string, int> tested;
  for (config.task.fold = 1; config.task.fold <= 4; ++config.task.fold) {
    const auto task = make_task(config);
    const Index count = task->size(Split::test);
    CHECK((count == 5 || count == 6));
    CHECK(task->size(Split::train) == 24 - count);
    CHECK(task->vocabularies().at("labels") == std::vector<std::string>{"few", "many", "rare"});
    const auto& tokens = task->vocabulary().tokens();
    for (int i = 0; i < 23; ++i)
      if (const auto word = fmt::format("w{}", i); std::ranges::find(tokens, word) == tokens.end())
        ++tested[word];
  }
  CHECK(tested.size() == 23);
  CHECK(std::ranges::all_of(tested, [](const auto& entry) { return entry.second == 1; }));
}

TEST_CASE("each fold of every task tests another part of the training examples") {
  const TempDir dir;
  const std::vector<std::pair<TaskKind, std::string>> kinds = {
      {TaskKind::word_sense, "{}\t0\ta it\n"}, {TaskKind::classify, "{}\ta b\n"},
      {TaskKind::coreference, "0\t1\ta it\n"}, {TaskKind::translate, "a\tb\n"},
      {TaskKind::tagging, "a O\nb {}\n\n"},    {TaskKind::masked_language_model, "a b\n"},
      {TaskKind::static_embedding, "a b\n"},   {TaskKind::language_model, "a {} b\n"}};
  for (const auto& [kind, line] : kinds) {
    CAPTURE(static_cast<int>(kind));
    std::string text;
    for (int i = 0; i < 40; ++i) text += fmt::format(fmt::runtime(line), i % 2 ? "odd" : "even");
    Config config = config_of(kind, dir.write("f.tsv", text));
    if (kind == TaskKind::static_embedding) config.model.kind = ModelKind::static_embedding;
    if (kind == TaskKind::language_model) config.model.kind = ModelKind::decoder;
    const Index all = make_task(config)->size(Split::train);
    config.task.folds = 4;
    Index tested = 0;
    for (config.task.fold = 1; config.task.fold <= 4; ++config.task.fold) {
      const auto task = make_task(config);
      REQUIRE(task->size(Split::test) > 0);
      tested += task->size(Split::test);
      if (kind == TaskKind::language_model) continue;  // windows of test texts lie side by side
      CHECK(task->size(Split::train) + task->size(Split::test) == all);
    }
    if (kind != TaskKind::language_model) CHECK(tested == all);
  }
}

TEST_CASE("more folds than training examples are refused") {
  const TempDir dir;
  Config config = config_of(TaskKind::classify, dir.write("f.tsv", "a\tx\nb\ty\na\tz\n"));
  config.task.folds = 4;
  const std::string error = error_of<UserError>([&] { make_task(config); });
  CHECK(error == config.task.train +
                     ": task.fold with 4 parts needs as many training examples; there are 3");
}

TEST_CASE("which examples each split has depends on the seed, whatever the task") {
  const TempDir dir;
  // A line that every task can read where its columns are in place.
  const std::vector<std::pair<TaskKind, std::string>> kinds = {
      {TaskKind::word_sense, "{0}\t0\tw{1} it\n"},
      {TaskKind::classify, "{0}\tw{1}\n"},
      {TaskKind::coreference, "0\t1\tw{1} it\n"},
      {TaskKind::translate, "w{1}\tx{1}\n"},
      {TaskKind::masked_language_model, "w{1} x{1}\n"},
      {TaskKind::static_embedding, "w{1} x{1}\n"}};
  for (const auto& [kind, line] : kinds) {
    CAPTURE(static_cast<int>(kind));
    std::string text;
    for (int i = 0; i < 40; ++i) text += fmt::format(fmt::runtime(line), i % 2 ? "odd" : "even", i);
    Config config = config_of(kind, "");
    if (kind == TaskKind::static_embedding) config.model.kind = ModelKind::static_embedding;
    config.task.data = dir.write("f.tsv", text).string();
    config.task.valid_share = 0.5;
    const auto tokens = [&](std::uint64_t seed) {
      config.seed = seed;
      return make_task(config)->vocabularies().at("tokens");
    };
    CHECK(tokens(1) == tokens(1));
    CHECK(tokens(1) != tokens(2));
  }
}

TEST_CASE("a text is divided by characters, whatever their length in bytes") {
  const TempDir dir;
  Config config = config_of(TaskKind::language_model, "");
  config.model.max_length = 3;
  config.task.data = dir.write("f.txt", "abcdefgh\u0915\u0916\u0917\n").string();
  config.task.valid_share = 0.25;
  config.task.test_share = 0.25;
  const auto task = make_task(config);
  CHECK(task->size(Split::train) == 3);  // of "abcdef"
  CHECK(task->size(Split::test) == 1);   // of "gh\u0915"
  CHECK(task->size(Split::valid) == 1);
  CHECK(task->vocabulary().size() == 8);
  // 0.29 * 100 is less than 29 in binary; fractions of characters are rounded to the nearest.
  config.task.data = dir.write("f.txt", std::string(99, 'a') + "\n").string();
  config.task.valid_share = 0.29;
  config.task.test_share = 0.126;
  const Run run = start_run(config);
  CHECK(run.task->evaluate(*run.network, Split::valid).count == 29 - 1);
  CHECK(run.task->evaluate(*run.network, Split::test).count == 13 - 1);
}

TEST_CASE("chrF is 1 for equal texts, 0 without a common character, and blind to spaces") {
  CHECK(chrf("सरल काम", "सरल काम") == doctest::Approx(1));
  CHECK(chrf("abc", "xyz") == 0);
  CHECK(chrf("", "xyz") == 0);
  CHECK(chrf("a b c", "abc") == doctest::Approx(1));
}

TEST_CASE(
    "chrF leaves out white space of Unicode, and n-grams that a short reference cannot have") {
  CHECK(chrf("longer\u00A0words\u2028\u3000here", "longerwordshere") == doctest::Approx(1));
  CHECK(chrf("a\u200Bb", "ab") < 1);  // a zero-width space is none
  // As sacreBLEU 2: "abcdef" for "ab" has 2 of 6 and 1 of 5 right n-grams of 1 and 2 characters;
  // its longer ones do not count beside those of the other pair.
  ChrF score;
  score.add("abcdef", "ab");
  score.add("xyz", "xyz");
  const double precision = (5.0 / 9 + 3.0 / 7 + 1) / 3, recall = 1;
  CHECK(score.value() == doctest::Approx(5 * precision * recall / (4 * precision + recall)));
}

TEST_CASE("chrF counts recall twice as much as precision") {
  // n = 1: 2 of 2 and 2 of 3; n = 2: 1 of 1 and 1 of 2; n = 3: only the reference has any.
  const double precision = 1, recall = (2.0 / 3 + 1.0 / 2) / 2;
  CHECK(chrf("ab", "abc") == doctest::Approx(5 * precision * recall / (4 * precision + recall)));
}

TEST_CASE("options of models and tasks that contradict each other are refused") {
  const auto conflict = [](auto change) {
    Config config = config_of(TaskKind::classify, "f.tsv");
    change(config);
    const auto found = find_conflict(config);
    return found ? found->text : "none";
  };
  CHECK(conflict([](Config&) {}) == "none");
  CHECK(conflict([](Config& c) { c.task.kind = TaskKind::translate; }) ==
        "task.kind \"translate\" and model.kind \"encoder-decoder\" need each other");
  CHECK(conflict([](Config& c) { c.model.kind = ModelKind::encoder_decoder; }) ==
        "task.kind \"translate\" and model.kind \"encoder-decoder\" need each other");
  CHECK(conflict([](Config& c) { c.model.kv_heads = 3; }) ==
        "model.kv_heads must divide model.heads (2), got 3");
  CHECK(conflict([](Config& c) {
          c.model.kind = ModelKind::recurrent;
          c.model.bidirectional = true;
          c.model.width = 7;
        }) == "model.width must be even when model.bidirectional is true, got 7");
  CHECK(conflict([](Config& c) {
          c.model.kind = ModelKind::fixed_length;
          c.model.feed_forward = 0;
        }) == "model.feed_forward must be > 0 when model.kind is \"feed-forward\"");
  CHECK(conflict([](Config& c) {
          c.model.kind = ModelKind::convolution;
          c.model.width = 2;
        }) == "model.width must be at least 3 for the kernels of a convolution, got 2");
  CHECK(conflict([](Config& c) {
          c.task.kind = TaskKind::language_model;
          c.model.kind = ModelKind::convolution;
        }).starts_with("task.kind \"language-model\" needs a causal model"));
}

}  // namespace qkv::tasks_test
