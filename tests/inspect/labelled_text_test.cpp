#include "inspect/labelled_text.h"

#include <doctest/doctest.h>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "train/run/run.h"

using namespace qkv;

namespace {

Run bank_run() {
  Config config;
  config.name = "bank";
  config.task.train = QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";
  config.model.width = 8;
  config.model.heads = 2;
  return start_run(config);
}

}  // namespace

TEST_CASE("the last column is the sentence, the columns before it label and index") {
  const Run run = bank_run();
  const TempDir folder;
  const auto file =
      folder.write("d.tsv", "money\t2\tthe money bank\nriver\tthe river bank\nthe bank\nhello\n");
  const auto texts = read_labelled_texts(run, file, silent_reading);
  REQUIRE(texts.size() == 4);
  CHECK(texts[0].label == "money");
  CHECK(texts[0].index == 2);
  CHECK(texts[0].answer == 0);
  CHECK(texts[1].label == "river");
  CHECK(texts[1].index == 2);
  CHECK(texts[1].answer == 1);
  CHECK(texts[2].label.empty());
  CHECK(texts[2].index == 1);
  CHECK(texts[2].answer == -1);
  CHECK(texts[3].index == -1);
}

TEST_CASE("a line that is no sentence is named with what is wrong") {
  const Run run = bank_run();
  const TempDir folder;
  const auto error = [&](std::string_view line) {
    const auto file = folder.write("d.tsv", std::string("the bank\n") + std::string(line));
    return error_of<UserError>([&] { read_labelled_texts(run, file, silent_reading); });
  };
  CHECK(error("money\t7\tthe bank\n")
            .ends_with("d.tsv:2: the index must be less than the sentence's 2 words, got 7"));
  CHECK(error("money\t-1\tthe bank\n").find("got \"-1\"") != std::string::npos);
  CHECK(error("a\tb\tc\tthe bank\n").find("has 4 columns") != std::string::npos);
}

TEST_CASE("a coreference line names the word that is the answer") {
  Config config;
  config.name = "pronoun";
  config.task.kind = TaskKind::coreference;
  config.task.train = QKV_SOURCE_DIR "/datasets/pronoun/valid.tsv";
  config.model.width = 8;
  config.model.heads = 2;
  const Run run = start_run(config);
  const LabelledText text = run.task->read_line(tsv_row("1\t4\tthe fox ran because it was late"));
  CHECK(text.label.empty());
  CHECK(text.index == 4);
  CHECK(text.antecedent == 1);
  CHECK(text.answer == 1);
  CHECK(run.task->read_line(tsv_row("the fox ran because it was late")).answer == -1);
}

TEST_CASE(
    "a line of a file is tokenized as training tokenized it, and so is the word that it names") {
  const TempDir folder;
  Config config;
  config.task.train =
      folder.write("train", "firm\t0\tApple sells phones\nfruit\t1\tthe apple fell\n");
  config.model.width = 8;
  config.model.heads = 2;
  const Run run = start_run(config);
  const LabelledText line = run.task->read_line(tsv_row("firm\t2\t\"They say Apple, fell"));
  CHECK(line.sentence.words == std::vector<std::string>{"\"", "they", "say", "apple", ",", "fell"});
  CHECK(line.index == 3);
}
