#include "train/tasks/naive_bayes.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>

#include "layers/attention.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "train/run/run.h"

using namespace qkv;

namespace {

// Labels a (2 of 3 examples) and b; "x" is asked about.
constexpr std::string_view sentences =
    "a\t2\tp q x q rivers s\n"
    "a\t1\tp x riverbank t u v\n"
    "b\t3\tw s t x t q\n";

Config config_of(const std::filesystem::path& file) {
  Config config;
  config.name = "tiny";
  config.task.train = config.task.test = file.string();
  config.model = {.width = 8,
                  .heads = 2,
                  .attention = AttentionKind::uniform,
                  .position = PositionKind::none,
                  .feed_forward = 0,
                  .norm = NormKind::none,
                  .embedding_std = 0.1,
                  .init = InitKind::naive_bayes};
  return config;
}

/// Of learned attention, whose heads of two dimensions take turns at windows.
Config with_windows(Config config, Index heads) {
  config.model.width = 2 * heads;
  config.model.heads = heads;
  config.model.attention = AttentionKind::learned;
  config.model.position = PositionKind::relative;
  return config;
}

std::vector<double> logits_of(const LoadedModel& model, std::string_view text, Index index) {
  const NoGrad no_grad;
  Context context;
  return model.task->scores(*model.network, model.task->read(text), index, context).logits.values();
}

/// Half of the log odds of a word or stem that is in so many examples of a and of b, of so many.
double half_log_odds(double a, double b, double words) {
  return (std::log((a + 0.05) / (9 + 0.05 * words)) - std::log((b + 0.05) / (4 + 0.05 * words))) /
         2;
}

/// The first dimension of a token's vector.
double first_dimension(const Run& run, std::string_view token) {
  const auto id = static_cast<std::size_t>(run.task->vocabulary().id(token));
  return run.network->model->embedding.weight.value().values()[id * 8];
}

}  // namespace

TEST_CASE(
    "before its first step, a model of uniform attention is naive Bayes over words and stems, "
    "which weigh as much as they have letters") {
  const TempDir dir;
  const Run run = start_run(config_of(dir.write("f.tsv", sentences)));
  // Of the words besides x, and of their stems: in how many examples of a and of b.
  using Counts = std::map<std::string, std::array<double, 2>>;
  const Counts words = {{"p", {2, 0}},         {"q", {1, 1}}, {"rivers", {1, 0}},
                        {"riverbank", {1, 0}}, {"s", {1, 1}}, {"t", {1, 1}},
                        {"u", {1, 0}},         {"v", {1, 0}}, {"w", {0, 1}}};
  const Counts of_four = {{"p", {2, 0}}, {"q", {1, 1}}, {"rive", {2, 0}}, {"s", {1, 1}},
                          {"t", {1, 1}}, {"u", {1, 0}}, {"v", {1, 0}},    {"w", {0, 1}}};
  const Counts of_six = {{"p", {2, 0}},      {"q", {1, 1}}, {"rivers", {1, 0}},
                         {"riverb", {1, 0}}, {"s", {1, 1}}, {"t", {1, 1}},
                         {"u", {1, 0}},      {"v", {1, 0}}, {"w", {0, 1}}};
  constexpr std::array letters = {1, 6, 1, 1};
  const auto log_odds = [&](const Counts& counts, const std::vector<std::string>& sentence) {
    const double smoothing = 0.05 * static_cast<double>(counts.size());
    double sum = 0;
    for (std::size_t i = 0; i < sentence.size(); ++i) {
      const auto& [a, b] = counts.at(sentence[i]);
      const double weight = letters[i] / (28.0 / 15);  // the 15 words besides x have 28 letters
      sum += weight *
             (std::log((a + 0.05) / (9 + smoothing)) - std::log((b + 0.05) / (4 + smoothing)));
    }
    return sum;
  };
  const double expected = std::log(2.0) + log_odds(words, {"p", "rivers", "w", "w"}) +
                          log_odds(of_four, {"p", "rive", "w", "w"}) +
                          log_odds(of_six, {"p", "rivers", "w", "w"});
  // The mean over the 5 tokens, times the mean number of 5 words besides the one asked about.
  const auto logits = logits_of(run, "p rivers x w w", 2);
  CHECK(logits[0] - logits[1] == doctest::Approx(0.2 * expected).epsilon(1e-5));
}

TEST_CASE("a stem weighs as much as it has letters") {
  const TempDir dir;
  Config config = config_of(dir.write("f.tsv", sentences));
  config.task.stems = true;
  const double expected = half_log_odds(1, 0, 9) + half_log_odds(2, 0, 8);
  CHECK(first_dimension(start_run(config), "rivers..") ==
        doctest::Approx(6 / (28.0 / 15) * expected).epsilon(1e-5));
}

TEST_CASE("a background text tells how much words weigh, of words that it lacks, too") {
  const TempDir dir;
  Config config = config_of(dir.write("f.tsv", sentences));
  config.task.background =
      dir.write("text", "S s t\nrivers riverside riverside unknown\n").string();
  config.task.stems = true;
  const Run run = start_run(config);
  // n(w) + 0.5, where the text has w n(w) times, of 7 words; of the words besides x in sentences.
  const std::map<std::string, double> counts = {{"s", 2.5}, {"t", 1.5}, {"rivers", 1.5}};
  const auto weight = [&](const std::string& word) {
    const auto found = counts.find(word);
    return std::pow(std::log(7 / (found == counts.end() ? 0.5 : found->second)), 2);
  };
  double sum = 0;
  for (const std::string_view word :
       {"p", "q", "q", "rivers", "s", "p", "riverbank", "t", "u", "v", "w", "s", "t", "t", "q"})
    sum += weight(std::string(word)) / 15;
  const auto row = [&](std::string_view word) { return first_dimension(run, word); };
  const double w = 2 * half_log_odds(0, 1, 9) + half_log_odds(0, 1, 8);
  CHECK(row("w") == doctest::Approx(weight("w") / sum * w).epsilon(1e-5));
  const double s = 2 * half_log_odds(1, 1, 9) + half_log_odds(1, 1, 8);
  CHECK(row("s") == doctest::Approx(weight("s") / sum * s).epsilon(1e-5));
  // The text has "rivers.." twice, as "riverside".
  const double stem = std::pow(std::log(7 / 2.5), 2);
  const double rivers = half_log_odds(1, 0, 9) + half_log_odds(2, 0, 8);
  CHECK(row("rivers..") == doctest::Approx(stem / sum * rivers).epsilon(1e-5));
  CHECK(row("<unk>") == 0);
}

TEST_CASE("a background text without words is refused, and so is one that is not there") {
  const TempDir dir;
  Config config = config_of(dir.write("f.tsv", sentences));
  config.task.background = dir.write("blank", " \n\n").string();
  CHECK(error_of<UserError>([&] { start_run(config); }) ==
        "task.background: " + config.task.background + " has no words");
  config.task.background = (dir.path() / "none").string();
  CHECK(error_of<UserError>([&] { start_run(config); }).find("none: cannot be read") !=
        std::string::npos);
}

TEST_CASE("with relative positions, the heads of a naive Bayes start attend each to its window") {
  const TempDir dir;
  Config config = with_windows(config_of(dir.write("f.tsv", sentences)), 10);
  config.model.max_distance = 7;
  const Run run = start_run(config);
  Recorder recorder(*run.network);
  Context context({.recorder = &recorder});
  run.task->scores(*run.network, run.task->read("p q s t u v w p x q s t u v w p p"), 8, context);
  constexpr int time = 17, asked = 8;
  const auto weights = recorder.at("encoder.layers.0.attention.weights").values();  // [1, 10, T, T]
  constexpr std::array<std::array<int, 2>, 10> windows = {
      {{-8, 8}, {-6, 6}, {-2, -1}, {1, 2}, {-1, -1}, {1, 1}, {-2, -2}, {2, 2}, {-8, 8}, {-6, 6}}};
  for (std::size_t head = 0; head < windows.size(); ++head) {
    CAPTURE(head);
    const auto [first, last] = windows[head];
    const double bias = std::exp(6.0), inside = last - first + 1;
    for (int key = 0; key < time; ++key) {
      const bool in = first <= key - asked && key - asked <= last;
      CHECK(weights[(head * time + asked) * time + static_cast<std::size_t>(key)] ==
            doctest::Approx((in ? bias : 1) / (inside * bias + time - inside)));
    }
  }
}

TEST_CASE("in a window of one word, a naive Bayes start weighs all words alike") {
  const TempDir dir;
  const Run run = start_run(with_windows(config_of(dir.write("f.tsv", sentences)), 8));
  const auto vectors = run.network->model->embedding.weight.value().values();
  const auto word = static_cast<std::size_t>(run.task->vocabulary().id("riverbank"));
  // After x there are q, riverbank and t; the whole word and its stems were there once, with a.
  constexpr std::size_t head = 5, width = 16;
  const double a = std::log(1.05 / 2.15), b = std::log(0.05 / 1.15);
  CHECK(vectors[word * width + head * 2] == doctest::Approx(3 * (a - b) / 2).epsilon(1e-5));
}

TEST_CASE("a naive Bayes start needs heads at least as wide as there are labels") {
  const TempDir dir;
  Config config = config_of(dir.write("f.tsv", sentences));
  config.model.width = 2;
  CHECK(error_of<UserError>([&] { start_run(config); }) ==
        "model.init \"naive-bayes\" needs heads at least as wide as there are labels, 2; got "
        "model.width / model.heads = 1");
}

TEST_CASE("word dropout hides words in training alone, never the one that is asked about") {
  const TempDir dir;
  Config config = config_of(dir.write("f.tsv", sentences));
  config.model.init = InitKind::random;
  config.model.embedding_std = 1;
  const auto losses = [&](double word_dropout, const std::string& file) {
    Config changed = config;
    changed.task.word_dropout = word_dropout;
    const Run run = start_run(changed);
    const std::vector<Index> all = {0, 1, 2};
    Context training({.random = Random(1, Purpose::dropout)});
    return std::pair(run.task->loss(*run.network, all, training).value.item(),
                     run.task->evaluate(*run.network, std::filesystem::path(file)).loss);
  };
  const std::string unknown =
      dir.write("u.tsv", "a\t2\t? ? x ? ? ?\na\t1\t? x ? ? ? ?\nb\t3\t? ? ? x ? ?\n").string();
  const auto [none, hidden] = losses(0, unknown);
  CHECK(losses(1e12, unknown).first == doctest::Approx(hidden));
  CHECK(losses(1e12, config.task.test).second == doctest::Approx(none));
  CHECK(none != doctest::Approx(hidden));
}

TEST_CASE("word dropout spares what begins and ends a sentence of wordpiece") {
  const TempDir dir;
  Config config = config_of(dir.write("f.tsv", "a\tbank flows\nb\tflows bank flows\n"));
  config.task.kind = TaskKind::classify;
  config.task.tokenizer = TokenizerKind::word_piece;
  config.model.init = InitKind::random;
  config.model.embedding_std = 1;
  config.task.word_dropout = 1e12;
  ReadCallback silent;
  const Task::Vocabularies known = {
      {"tokens", {"<pad>", "<unk>", "[CLS]", "[SEP]", "bank", "flows"}}};
  const auto task = make_task(config, known, silent);
  Network network(config.model, {}, task->vocabulary().size(), task->outputs(),
                  Random(1, Purpose::initialisation));
  const std::vector<Index> all = {0, 1};
  Context training({.random = Random(1, Purpose::dropout)});
  const double hidden = task->loss(network, all, training).value.item();
  // Other words than these are unknown, [CLS] and [SEP] are as they were.
  const auto read = dir.write("u.tsv", "a\t? ?\nb\t? ? ?\n").string();
  CHECK(hidden == doctest::Approx(task->evaluate(network, std::filesystem::path(read)).loss));
}

TEST_CASE("word dropout reads a word as its stem, where there are stems") {
  const TempDir dir;
  Config config = config_of(dir.write("f.tsv", "a\t1\triverbank x rivers\nb\t0\tx banker\n"));
  config.model.init = InitKind::random;
  config.model.embedding_std = 1;
  config.task.stems = true;
  config.task.word_dropout = 1e12;
  const Run run = start_run(config);
  const std::vector<Index> all = {0, 1};
  Context training({.random = Random(1, Purpose::dropout)});
  const double hidden = run.task->loss(*run.network, all, training).value.item();
  const auto read = dir.write("u.tsv", "a\t1\triverboat x riversides\nb\t0\tx bankerly\n").string();
  CHECK(hidden ==
        doctest::Approx(run.task->evaluate(*run.network, std::filesystem::path(read)).loss));
}

TEST_CASE("class weights and label smoothing change the training loss alone") {
  const TempDir dir;
  Config config = config_of(dir.write("f.tsv", sentences));
  const auto losses = [&] {
    const Run run = start_run(config);
    const std::vector<Index> all = {0, 1, 2};
    Context training({.random = Random(1, Purpose::dropout)});
    return std::pair(run.task->loss(*run.network, all, training).value.item(),
                     run.task->evaluate(*run.network, Split::test).loss);
  };
  const auto plain = losses();
  CHECK(plain.first == doctest::Approx(plain.second));
  config.task.class_weights = ClassWeights::balanced;
  const auto balanced = losses();
  config.task.label_smoothing = 0.2;
  const auto smoothed = losses();
  CHECK(balanced.first != doctest::Approx(plain.first));
  CHECK(smoothed.first != doctest::Approx(balanced.first));
  CHECK(balanced.second == plain.second);
  CHECK(smoothed.second == plain.second);
}
