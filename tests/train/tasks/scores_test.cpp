#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tests/support/modules.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/run/run.h"
#include "train/tasks/choice_metrics.h"
#include "train/tasks/chrf.h"

namespace qkv::scores_test {

namespace {

Config config_of(TaskKind task, ModelKind model, const std::filesystem::path& file) {
  Config config = tiny_config(task, file, 8);
  config.task.valid = file.string();
  config.model.kind = model;
  return config;
}

/// Metrics of examples with these probabilities, `classes` of each.
Evaluation calibration_of(std::vector<double> probabilities, const std::vector<std::int32_t>& right,
                          Index classes, std::size_t at_once) {
  for (double& p : probabilities) p = std::log(p);
  const std::vector<std::string> words;
  ChoiceMetrics metrics(words);
  const auto width = static_cast<std::size_t>(classes);
  Evaluation evaluation;
  evaluation.count = std::ranges::count_if(right, [](std::int32_t answer) { return answer >= 0; });
  for (std::size_t begin = 0; begin < right.size(); begin += at_once) {
    const std::size_t end = std::min(begin + at_once, right.size());
    const auto rows = std::span(probabilities).subspan(begin * width, (end - begin) * width);
    const auto answers = std::span(right).subspan(begin, end - begin);
    metrics.update(Tensor::from(rows, {std::ssize(answers), classes}),
                   Indices(answers, {std::ssize(answers)}));
  }
  metrics.report(evaluation);
  return evaluation;
}

}  // namespace

TEST_CASE(
    "accuracy, the scores of labels and macro F1 follow from the table of right and given labels") {
  // Counts of answers, by the label and the answer, for 64 + 64 + 2 texts of one word each.
  const std::array<std::array<int, 3>, 3> counts = {{{60, 5, 1}, {20, 24, 0}, {2, 3, 15}}};
  const std::array<std::string, 3> labels = {"p", "q", "r"};
  const TempDir dir;
  std::string text;
  for (std::size_t right = 0; right < 3; ++right)
    for (std::size_t given = 0; given < 3; ++given)
      for (int i = 0; i < counts[right][given]; ++i)
        text += fmt::format("{}\tsays-{}\n", labels[right], labels[given]);
  Config config =
      config_of(TaskKind::classify, ModelKind::static_embedding, dir.write("f.tsv", text));
  config.model.width = 3;
  const Run run = start_run(config);
  // The word "says-q" has the vector (0, 4, 0), which goes through the output layer as it is.
  const Vocabulary& vocabulary = run.task->vocabulary();
  std::vector<double> table(static_cast<std::size_t>(3 * vocabulary.size()));
  for (std::size_t i = 0; i < 3; ++i)
    table[static_cast<std::size_t>(3 * vocabulary.id("says-" + labels[i])) + i] = 4;
  for (const auto& [path, parameter] : run.parameters)
    parameter->assign(path == "embedding.weight" ? Tensor::from(table, parameter->shape())
                      : path == "head.weight"    ? Tensor::from({1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3})
                                                 : Tensor::zeros({3}));

  const Evaluation evaluation = run.task->evaluate(*run.network, Split::valid);
  CHECK(evaluation.count == 130);
  CHECK(evaluation.metric("accuracy") == doctest::Approx(99.0 / 130));
  CHECK(evaluation.score == evaluation.metric("accuracy"));
  REQUIRE(evaluation.labels.size() == 3);
  const LabelScores& q = evaluation.labels[1];
  CHECK(q.label == "q");
  CHECK(q.count == 44);
  CHECK(q.precision == doctest::Approx(24.0 / 32));
  CHECK(q.recall == doctest::Approx(24.0 / 44));
  CHECK(q.f1 == doctest::Approx(2 * 24.0 / (32 + 44)));
  CHECK(q.predicted == std::vector<Index>{20, 24, 0});
  // 2 precision recall / (precision + recall), the labels being given 82, 32 and 16 times.
  const auto f1 = [](double precision, double recall) {
    return 2 * precision * recall / (precision + recall);
  };
  CHECK(evaluation.metric("macro_f1") ==
        doctest::Approx(
            (f1(60.0 / 82, 60.0 / 66) + f1(24.0 / 32, 24.0 / 44) + f1(15.0 / 16, 15.0 / 20)) / 3));
  const double right = -std::log(std::exp(4) / (std::exp(4) + 2)), wrong = right + 4;
  CHECK(evaluation.loss == doctest::Approx((99 * right + 31 * wrong) / 130));
}

TEST_CASE("log loss and calibration error follow from the probabilities") {
  // Confidence 0.9 and 0.92 share the bin (13/15, 14/15], where one of two is right; 0.7 is alone,
  // and the example without an answer does not count.
  const std::vector<double> probabilities = {0.9, 0.1, 0.08, 0.92, 0.5, 0.5, 0.3, 0.7};
  const std::vector<std::int32_t> right = {0, 0, -1, 1};
  const Evaluation all = calibration_of(probabilities, right, 2, 4);
  CHECK(all.metric("accuracy") == doctest::Approx(2.0 / 3));
  CHECK(all.metric("log_loss") ==
        doctest::Approx(-(std::log(0.9) + std::log(0.08) + std::log(0.7)) / 3));
  CHECK(all.metric("calibration_error") ==
        doctest::Approx((std::abs(1 - 0.9 - 0.92) + std::abs(1 - 0.7)) / 3));
  CHECK(all.score_by("log_loss") == -all.metric("log_loss"));
  CHECK(all.score_by("calibration_error") == -all.metric("calibration_error"));
  const Evaluation one_by_one = calibration_of(probabilities, right, 2, 1);
  for (const char* name : {"log_loss", "calibration_error"})
    CHECK(one_by_one.metric(name) == all.metric(name));
}

TEST_CASE("chance is calibrated, and a choice that cannot be does not change the probabilities") {
  const std::vector<double> thirds(9, 1.0 / 3);
  const Evaluation chance = calibration_of(thirds, {0, 1, 2}, 3, 3);
  CHECK(chance.metric("log_loss") == doctest::Approx(std::log(3)));
  CHECK(chance.metric("calibration_error") == doctest::Approx(0));
  const Evaluation padded = calibration_of({0.2, 0.8, 0, 0}, {1}, 4, 1),
                   narrow = calibration_of({0.2, 0.8}, {1}, 2, 1);
  CHECK(padded.metric("log_loss") == narrow.metric("log_loss"));
  CHECK(padded.metric("calibration_error") == narrow.metric("calibration_error"));
}

TEST_CASE("probabilities that are no numbers have no log loss and no calibration error") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Evaluation evaluation = calibration_of({nan, nan, 0.5, 0.5}, {0, 1}, 2, 2);
  CHECK(std::isnan(evaluation.metric("log_loss")));
  CHECK(std::isnan(evaluation.metric("calibration_error")));
}

TEST_CASE("the scores of many labels take memory in proportion to their number") {
  // 20,000 labels, as of an ID that is taken for one; the square would be 3 GB a matrix.
  std::vector<std::string> labels;
  for (int i = 0; i < 20'000; ++i) labels.push_back(fmt::format("{}", i));
  ChoiceMetrics metrics(labels);
  std::vector<float> scores(3 * labels.size());
  scores[7] = scores[labels.size() + 7] = scores[2 * labels.size() + 9] = 1;  // predicted: 7, 7, 9
  metrics.update(Tensor::from(std::vector<double>(scores.begin(), scores.end()),
                              {3, std::ssize(labels)}, DType::float32),
                 Indices({7, 8, 9}, {3}));
  Evaluation evaluation;
  evaluation.count = 3;
  metrics.report(evaluation);
  CHECK(evaluation.metric("accuracy") == doctest::Approx(2.0 / 3));
  CHECK(evaluation.metric("macro_f1") == doctest::Approx((2.0 / 3 + 0 + 1) / 3));
  CHECK(evaluation.labels[7].precision == 0.5);
  CHECK(evaluation.labels[7].recall == 1);
  CHECK(evaluation.labels[8].count == 1);
  CHECK(evaluation.labels[7].predicted.empty());
  CHECK(evaluation.probabilities.empty());
}

TEST_CASE("exact match and chrF compare each output with its own target") {
  const TempDir dir;
  std::string training;
  std::vector<std::string> sources;
  for (int i = 0; i < 135; ++i) {
    sources.push_back(fmt::format("s{} s{} s{}", i % 5, i / 5 % 5, i / 25));
    training += sources.back() + "\ta b c d\n";
  }
  Config config =
      config_of(TaskKind::translate, ModelKind::encoder_decoder, dir.write("train.tsv", training));
  const Run run = start_run(config);
  tests::assign_normal(*run.network);
  // Outputs of different lengths, few of them as long as a model can write.
  std::vector<double> bias(static_cast<std::size_t>(run.task->outputs()));
  bias[static_cast<std::size_t>(run.task->vocabulary().id("<eos>"))] = 3;
  run.network->head->bias->assign(Tensor::from(bias, {std::ssize(bias)}));
  // The model's own output is the target of every other source, where a target can be so long.
  std::string text;
  ChrF chrf;
  int right = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string output = run.task->predict(*run.network, sources[i]).at(0).label;
    const auto words = std::ranges::count(output, ' ') + 1;
    const bool equal = i % 2 == 0 && !output.empty() && words < 8;
    const std::string target = equal ? output : "e f";
    text += sources[i] + "\t" + target + "\n";
    chrf.add(output, target);
    right += equal;
  }
  REQUIRE(right > 10);
  const Evaluation evaluation = run.task->evaluate(*run.network, dir.write("test.tsv", text));
  CHECK(evaluation.count == 135);
  CHECK(evaluation.metric("exact_match") == doctest::Approx(right / 135.0));
  CHECK(evaluation.metric("chrf") == doctest::Approx(chrf.value()));
  CHECK(evaluation.score == evaluation.metric("exact_match"));
}

TEST_CASE("the loss of a language model is the mean over the text's characters, to its end") {
  const TempDir dir;
  // Two batches of 64 windows, and a third of a shorter window that is unlike the others.
  std::string text;
  const Random random(5, Purpose::testing);
  for (std::uint64_t i = 0; i < std::uint64_t{2} * 64 * 64; ++i)
    text += static_cast<char>('a' + (random.bits(i) % 5) * (i % 2));
  text += std::string(20, 'z') + "\n";
  Config config = config_of(TaskKind::language_model, ModelKind::decoder, dir.write("text", text));
  config.model.max_length = 64;
  const Run run = start_run(config);
  tests::assign_normal(*run.network);
  const Evaluation evaluation = run.task->evaluate(*run.network, Split::valid);

  const NoGrad no_grad;
  const auto ids_of = [&](std::size_t begin, std::size_t end) {
    std::vector<std::int32_t> ids;
    for (std::size_t i = begin; i < end; ++i)
      ids.push_back(run.task->vocabulary().id(text.substr(i, 1)));
    return ids;
  };
  double loss = 0;
  const std::size_t predicted = text.size() - 1, window = 64;
  for (std::size_t begin = 0; begin < predicted; begin += window) {
    const std::size_t end = std::min(begin + window, predicted);
    const auto ids = ids_of(begin, end), next = ids_of(begin + 1, end + 1);
    Context context;
    const Tensor x = (*run.network->model)(Indices(ids, {1, std::ssize(ids)}), {}, context);
    const Tensor logs = log_softmax(run.network->logits(x));
    for (std::size_t t = 0; t < next.size(); ++t)
      loss -= logs.values()[t * static_cast<std::size_t>(logs.dim(2)) +
                            static_cast<std::size_t>(next[t])];
  }
  CHECK(evaluation.count == std::ssize(text) - 1);
  CHECK(evaluation.loss == doctest::Approx(loss / static_cast<double>(predicted)).epsilon(1e-5));
  CHECK(evaluation.metric("perplexity") == doctest::Approx(std::exp(evaluation.loss)));
  CHECK(evaluation.metric("bits_per_token") == doctest::Approx(evaluation.loss / std::log(2)));
  CHECK(evaluation.score == -evaluation.loss);
}

}  // namespace qkv::scores_test
