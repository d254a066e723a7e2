#include "train/tasks/choice_metrics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/run/run.h"

namespace qkv::masked_language_model_test {

namespace {

Config config_of(const std::filesystem::path& train) {
  Config config = tiny_config(TaskKind::masked_language_model, train, 40);
  config.model.layers = 1;
  config.model.feed_forward = 16;
  return config;
}

/// Lines of 40 tokens, ten of each of w0, w1, w2, w3, in an order of their own.
std::string long_lines(int count) {
  std::string text;
  for (int line = 0; line < count; ++line)
    for (int i = 0; i < 40; ++i)
      text += fmt::format("w{}{}", (i * 7 + line) % 4, i < 39 ? " " : "\n");
  return text;
}

/// The ids that a model of one-hot vectors reads, [B, T].
std::vector<std::int32_t> ids_read(const Run& run, std::span<const Index> examples,
                                   std::optional<Random> random) {
  Recorder recorder(*run.network->model);
  Context context({.random = random, .recorder = &recorder});
  const NoGrad no_grad;
  run.task->loss(*run.network, examples, context);
  const Tensor vectors = recorder.at("static");
  const auto width = static_cast<std::size_t>(vectors.dim(2));
  const auto values = vectors.data<float>();
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < values.size(); i += width)
    ids.push_back(static_cast<std::int32_t>(std::ranges::max_element(values.subspan(i, width)) -
                                            values.subspan(i, width).begin()));
  return ids;
}

/// A run whose model reads one-hot vectors of the 6 tokens of `long_lines`.
Run one_hot_run(const TempDir& dir, int lines, double mask_probability) {
  Config config = config_of(dir.write("text", long_lines(lines)));
  config.task.mask_probability = mask_probability;
  config.model.embedding = EmbeddingKind::one_hot;
  config.model.width = 6;
  return start_run(config);
}

/// The positions of the mask token.
std::vector<std::size_t> masks_in(std::span<const std::int32_t> ids) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] == Vocabulary::unknown) positions.push_back(i);
  return positions;
}

Random at_step(std::uint64_t step) {
  return {1, Purpose::dropout, step};
}

}  // namespace

TEST_CASE("the given fraction of a sentence's tokens is predicted, and at least one") {
  const TempDir dir;
  const auto targets = [&](std::string_view text, double probability) {
    Config config = config_of(dir.write("text", text));
    config.task.mask_probability = probability;
    const Run run = start_run(config);
    return run.task->evaluate(*run.network, Split::train).count;
  };
  CHECK(targets(long_lines(1), 0.15) == 6);
  CHECK(targets(long_lines(3), 0.5) == 60);
  CHECK(targets(long_lines(1), 1) == 40);
  CHECK(targets("a b c\nd e\n", 0.01) == 2);
}

TEST_CASE("of the tokens to predict 80 % are masked, 10 % random, and 10 % stay") {
  const TempDir dir;
  const Run run = one_hot_run(dir, 500, 1);
  std::vector<Index> all(500);
  std::iota(all.begin(), all.end(), 0);
  const auto ids = ids_read(run, all, at_step(0));
  REQUIRE(ids.size() == 20000);
  const auto masks = std::ranges::count(ids, Vocabulary::unknown);
  CHECK(static_cast<double>(masks) == doctest::Approx(16000).epsilon(0.02));
  CHECK(std::ranges::count(ids, Vocabulary::padding) == 0);
  // With four tokens, the right one is also one in four of the random ones.
  std::vector<std::int32_t> right;
  run.task->for_each_ids_of(Split::train, [&](std::span<const std::int32_t> part) {
    if (part[0] >= 0) right.insert(right.end(), part.begin(), part.end());
  });
  REQUIRE(right.size() == ids.size());
  Index same = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) same += ids[i] == right[i];
  CHECK(static_cast<double>(same) == doctest::Approx(20000 * (0.1 + 0.1 / 4)).epsilon(0.1));
}

TEST_CASE("training masks anew at every step, evaluation alike, both by nothing but their place") {
  const TempDir dir;
  const Run run = one_hot_run(dir, 8, 0.15);
  const Index some[] = {3, 5, 5};
  CHECK(ids_read(run, some, at_step(7)) == ids_read(run, some, at_step(7)));
  CHECK(ids_read(run, some, at_step(7)) != ids_read(run, some, at_step(8)));
  const auto drawn = ids_read(run, some, at_step(7));
  CHECK(std::vector(drawn.begin() + 40, drawn.begin() + 80) !=
        std::vector(drawn.begin() + 80, drawn.end()));
  const Index one[] = {5};
  const auto fixed = ids_read(run, some, std::nullopt);
  CHECK(std::vector(fixed.begin() + 40, fixed.begin() + 80) == ids_read(run, one, std::nullopt));
  CHECK(std::vector(fixed.begin() + 80, fixed.end()) == ids_read(run, one, std::nullopt));
  CHECK(masks_in(std::span(fixed).first(40)) != masks_in(std::span(fixed).subspan(40, 40)));
}

TEST_CASE("unknown tokens are not predicted, and a sentence of nothing else is left out") {
  const TempDir dir;
  Config config = config_of(dir.write("text", "a a once\ntwice upon\na b a b\n"));
  config.task.min_count = 2;
  config.task.mask_probability = 1;
  const Run run = start_run(config);
  CHECK(run.task->size(Split::train) == 2);
  CHECK(run.task->evaluate(*run.network, Split::train).count == 2 + 4);
  config.task.min_count = 9;
  CHECK(error_of<UserError>([&] {
          start_run(config);
        }).ends_with("no token occurs task.min_count = 9 times, so that none can be predicted"));
}

TEST_CASE("sentences come from plain and from labelled files, long ones in parts") {
  const TempDir dir;
  Config config = config_of(dir.write("text", "river\t1\tThe bank, flooded\n\none two\n"));
  config.model.max_length = 3;
  const auto task = make_task(config);
  CHECK(task->size(Split::train) == 3);  // "the bank ,", "flooded", "one two"
  CHECK(task->tokens(0) == 3);
  CHECK(task->tokens(1) == 1);
  CHECK(task->vocabulary().id("river") == Vocabulary::unknown);
  const LabelledText line = task->read_line(tsv_row("river\t1\tThe bank"));
  CHECK(line.label == "river");
  CHECK(line.index == 1);
  CHECK(line.answer == task->vocabulary().id("bank"));
  CHECK(task->read_line(tsv_row("the [MASK]")).index == 1);
  CHECK(task->read_line(tsv_row("the [MASK]")).answer == -1);
}

TEST_CASE("[MASK] is one token to predict, whatever a token is") {
  const TempDir dir;
  for (const auto& row : tokenizer_kinds) {
    if (is_imported(row.value)) continue;  // their tokens are not learned
    CAPTURE(row.name);
    Config config = config_of(dir.write("text", "the bank of the river.\nthe bank\n"));
    config.task.tokenizer = row.value;
    config.task.merges = 20;
    const Run run = start_run(config);
    const Sentence one = run.task->read("the [MASK].");
    REQUIRE(one.targets.size() == 1);
    CHECK(one.words[static_cast<std::size_t>(one.targets[0])] == "[MASK]");
    CHECK(one.words.back() == ".");
    CHECK(one.ids.size() == one.words.size());
    CHECK(run.task->read("[MASK][MASK] ([MASK])").targets.size() == 3);
    const auto predictions = run.task->predict(*run.network, "the [MASK] of the [mask]");
    REQUIRE(predictions.size() == 2);
    CHECK(predictions[0].choices.size() <= 10);
    CHECK(predictions[0].choices.front() == predictions[0].label);
    CHECK(predictions[0].probabilities.front() == predictions[0].probability);
    CHECK(std::ranges::is_sorted(predictions[0].logits, std::greater()));
    CHECK(error_of<UserError>([&] { run.task->predict(*run.network, "the bank"); }) ==
          "\"the bank\" has no [MASK]; write it in place of each word to predict");
  }
}

TEST_CASE("accuracy and perplexity are of the masked tokens") {
  MaskedTokenMetrics metrics;
  metrics.update(Tensor::from({0, 1, 0, 2, 0, 1}, {2, 3}, DType::float32), Indices({1, 2}, {2}));
  metrics.update(Tensor::from({3, 1, 0}, {1, 3}, DType::float32), Indices({0}, {1}));
  Evaluation evaluation;
  evaluation.loss = std::log(5.0);
  metrics.report(evaluation);
  CHECK(evaluation.count == 3);
  CHECK(evaluation.metric("accuracy") == doctest::Approx(2.0 / 3));
  CHECK(evaluation.metric("perplexity") == doctest::Approx(5));
}

TEST_CASE("an option that masks has no effect elsewhere") {
  CHECK(error_of<ConfigError>([] {
          Config config;
          config.name = "x";
          config.task.train = "x";
          const std::string set[] = {"task.mask_probability=0.3"};
          apply_overrides(config, set);
        }) ==
        "--set task.mask_probability=0.3: task.mask_probability has no effect here: it needs "
        "task.kind \"masked-language-model\"; remove it");
}

}  // namespace qkv::masked_language_model_test
