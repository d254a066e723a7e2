#include "train/tasks/choice_metrics.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/run/run.h"

namespace qkv::tagging_test {

namespace {

struct Messages : ReadCallback {
  void on_message(const std::string& line) override { lines.push_back(line); }
  std::vector<std::string> lines;
};

constexpr std::string_view two_sentences =
    "Ann B-PER\nsees O\nNew B-LOC\nYork I-LOC\n\nAnn B-PER\n";

Config config_of(const std::filesystem::path& train) {
  return tiny_config(TaskKind::tagging, train, 6);
}

/// Scores whose largest is that of each given tag, [1, T, 5].
Tensor certain(const std::vector<int>& tags) {
  std::vector<double> scores(tags.size() * 5);
  for (std::size_t i = 0; i < tags.size(); ++i)
    scores[i * 5 + static_cast<std::size_t>(tags[i])] = 1;
  return Tensor::from(scores, {1, std::ssize(tags), 5}, DType::float32);
}

/// `given`, `right`: numbers of labels.
double span_f1(const std::vector<std::string>& labels, const std::vector<int>& given,
               const std::vector<std::int32_t>& right) {
  TaggingMetrics metrics(labels);
  metrics.update(certain(given), Indices(right, {1, std::ssize(right)}));
  Evaluation evaluation;
  metrics.report(evaluation);
  return evaluation.metric("span_f1");
}

}  // namespace

TEST_CASE("a tagger has a label for each word") {
  const TempDir dir;
  const Run run = start_run(config_of(dir.write("f", two_sentences)));
  CHECK(run.task->size(Split::train) == 2);
  CHECK(run.task->tokens(0) == 4);
  CHECK(run.task->vocabularies().at("labels") ==
        std::vector<std::string>{"B-LOC", "B-PER", "I-LOC", "O"});
  // A label a word between white space, as in training, where a comma has one of its own.
  const auto predictions = run.task->predict(*run.network, "Ann sees, \"York ,");
  REQUIRE(predictions.size() == 4);
  CHECK(predictions[1].index == 1);
  CHECK(predictions[2].index == 4);
  CHECK(predictions[3].index == 5);
  CHECK(predictions[0].choices.size() == 4);
  const Evaluation evaluation = run.task->evaluate(*run.network, Split::train);
  CHECK(evaluation.count == 5);
  CHECK(evaluation.metrics[0].first == "accuracy");
  CHECK(evaluation.metric("span_f1") == evaluation.score);
}

TEST_CASE("span F1 counts exact spans of the right type") {
  const std::vector<std::string> labels = {"B-LOC", "B-PER", "I-LOC", "I-PER", "O"};
  TaggingMetrics metrics(labels);
  // Expected PER [0, 2) and LOC [3, 5); found PER [0, 2), LOC [3, 4) and PER [4, 5); the token
  // without a label does not count.
  metrics.update(certain({1, 3, 4, 4, 0, 1}), Indices({1, 3, 4, -1, 0, 2}, {1, 6}));
  Evaluation evaluation;
  metrics.report(evaluation);
  CHECK(evaluation.count == 5);
  CHECK(evaluation.metric("accuracy") == doctest::Approx(0.8));
  CHECK(evaluation.metric("span_f1") == doctest::Approx(2.0 * 1 / (2 + 3)));
  const double confidence = std::exp(1) / (std::exp(1) + 4);
  CHECK(evaluation.metric("calibration_error") == doctest::Approx(0.8 - confidence));
}

TEST_CASE("span F1 knows the ends and single words of IOBES and BILOU") {
  const std::vector<std::string> iobes = {"B-PER", "E-PER", "O", "S-LOC", "S-PER"};
  CHECK(span_f1(iobes, {0, 1, 2, 3}, {0, 1, 2, 4}) == 0.5);
  CHECK(span_f1(iobes, {0, 1, 2}, {0, 2, 2}) == 0);
  const std::vector<std::string> bilou = {"B-PER", "L-PER", "O", "U-LOC", "U-PER"};
  CHECK(span_f1(bilou, {0, 1, 2, 3}, {0, 1, 2, 4}) == 0.5);
  const std::vector<std::string> single = {"O", "U-A", "U-B", "U-C", "U-D"};
  CHECK(span_f1(single, {0, 1, 2}, {0, 1, 1}) == 0.5);
}

TEST_CASE("labels that are no BIO labels have no spans") {
  const std::vector<std::string> labels = {"noun", "verb", "x", "y", "z"};
  TaggingMetrics metrics(labels);
  metrics.update(certain({0, 1}), Indices({0, 0}, {1, 2}));
  Evaluation evaluation;
  metrics.report(evaluation);
  CHECK_FALSE(evaluation.find("span_f1").has_value());
  CHECK(evaluation.score == 0.5);
}

TEST_CASE("the first of a word's tokens has its label, and a line shows a word that has one") {
  const TempDir dir;
  Config config = config_of(dir.write("f", "low O\nlow O\nlowly B-X\n\nlow O\nlot B-X\n"));
  config.task.tokenizer = TokenizerKind::bpe;
  const auto task = make_task(config);
  CHECK(task->tokens(0) == 5);
  const LabelledText line = task->read_line(tsv_row("O B-X\tlow lowly"));
  CHECK(line.label == "B-X");
  CHECK(line.index == 1);
  CHECK(line.sentence.words[1] == " low");
  CHECK(line.sentence.targets == std::vector<Index>{0, 1});
  CHECK(line.answer == 0);
  CHECK(error_of<UserError>([&] { task->read_line(tsv_row("O\tlow lowly")); }) ==
        "has 1 labels for 2 words");
}

TEST_CASE("a word that has no token in wordpiece has no label, in training and in predictions") {
  const TempDir dir;
  const std::string odd = "\u00AD";  // a soft hyphen: a control character to BERT
  Config config = config_of(dir.write("f", "the O\n" + odd + " B-X\nbank B-ORG\n" + odd +
                                               " B-ORG\n\nbanks B-ORG\n\n" + odd + " O\n"));
  config.task.tokenizer = TokenizerKind::word_piece;
  config.model.max_length = 8;
  const Task::Vocabularies known = {
      {"tokens", {"<pad>", "<unk>", "[CLS]", "[SEP]", "the", "bank", "##s", "-"}}};
  Messages messages;
  const auto task = make_task(config, known, messages);
  CHECK(task->vocabularies().at("labels") == std::vector<std::string>{"B-ORG", "O"});
  CHECK(task->size(Split::train) == 2);
  REQUIRE(messages.lines.size() == 2);
  CHECK(messages.lines[0].ends_with("f: 3 labels left out, of words without a token"));
  CHECK(messages.lines[1].ends_with("f: 1 of 3 examples left out: no word has a token"));
  // [CLS] the bank ##s [SEP]: what continues a word is not asked about.
  CHECK(task->read("the " + odd + " banks").targets == std::vector<Index>{1, 2});
  CHECK(task->read("the-bank banks").targets == std::vector<Index>{1, 4});
  const LabelledText line = task->read_line(tsv_row("B-ORG O B-ORG\t" + odd + " the banks"));
  CHECK(line.index == 2);
  CHECK(line.label == "B-ORG");
  CHECK(error_of<UserError>([&] { task->read(odd); }) ==
        "\"" + odd + "\" has no word that the tokenizer reads");
}

TEST_CASE("a tagger cuts long sentences and leaves out unknown labels when asked") {
  const TempDir dir;
  Config config = config_of(dir.write("f", two_sentences));
  config.task.valid = dir.write("g", "a O\nb O\nc O\nd O\ne O\nf O\ng B-PER\n\na B-ORG\n").string();
  const auto error = [&] { return error_of<UserError>([&] { make_task(config); }); };
  CHECK(error().find("g:1: the sentence has 7 words") != std::string::npos);
  config.task.truncate = true;
  CHECK(error().find("g:9: unknown label \"B-ORG\"; the training data has: B-LOC, B-PER") !=
        std::string::npos);
  config.task.unknown_labels = UnknownLabels::skip;
  const auto task = make_task(config);
  CHECK(task->size(Split::valid) == 1);
}

}  // namespace qkv::tagging_test
