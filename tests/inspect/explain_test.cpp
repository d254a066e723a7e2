#include "inspect/explain.h"

#include <doctest/doctest.h>

#include "layers/attention.h"
#include "tests/support/randn.h"

using namespace qkv;

namespace {

Run small_run(AttentionKind attention) {
  Config config;
  config.name = "small";
  config.task.train = config.task.valid = config.task.test =
      QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";
  config.model = {.width = 8, .layers = 2, .heads = 2, .attention = attention, .feed_forward = 12};
  return start_run(config);
}

Explanation explained(Run& run) {
  const Sentence sentence = run.task->read("money bank grows");
  return explain(run, sentence, 1);
}

void check_close(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  for (std::size_t i = 0; i < a.values().size(); ++i)
    CHECK(a.values()[i] == doctest::Approx(b.values()[i]).epsilon(1e-5));
}

}  // namespace

TEST_CASE("each step of a head follows from the one before") {
  for (const auto kind :
       {AttentionKind::learned, AttentionKind::uniform, AttentionKind::parameter_free}) {
    Run run = small_run(kind);
    const auto modules = attention_steps(explained(run).recorder);
    REQUIRE(modules.size() == 2);
    CHECK(modules[1].path == "encoder.layers.1.attention");
    CHECK(modules[0].heads.size() == (kind == AttentionKind::parameter_free ? 1 : 2));
    for (const HeadSteps& head : modules[0].heads) {
      check_close(head.scores, matmul(head.q, head.k, Transpose::second));
      check_close(head.scaled, head.scores * modules[0].scale);
      check_close(head.weights, softmax(head.scaled));
      check_close(head.mixed, matmul(head.weights, head.v));
    }
  }
}

TEST_CASE("the bias of positions is part of the scores that the softmax gets") {
  struct Nearer final : AttentionPositions {
    Tensor score_bias(Index heads, Index, Index queries, Index keys, DType dtype) const override {
      std::vector<double> values;
      for (Index i = 0; i < heads * queries * keys; ++i)
        values.push_back(-static_cast<double>(i % 5));
      return Tensor::from(values, {1, heads, queries, keys}, dtype);
    }
  };
  MultiHeadAttention attention({.width = 8, .heads = 2, .position = PositionKind::none});
  initialise(attention, 1);
  attention.positions = std::make_unique<Nearer>();
  const Tensor x = tests::randn({1, 3, 8});
  Recorder recorder(attention);
  Context context({.recorder = &recorder});
  attention(x, x, {}, context);
  const AttentionSteps steps = attention_steps(recorder).at(0);
  CHECK(steps.biased);
  for (const HeadSteps& head : steps.heads) check_close(head.weights, softmax(head.scaled));
}

TEST_CASE("an explanation ends in the very values that the task predicts") {
  Run run = small_run(AttentionKind::learned);
  const Explanation explanation = explained(run);
  const Prediction prediction = run.task->predict(*run.network, "money bank grows").front();
  const auto probabilities = explanation.probabilities.values();
  const auto best = std::ranges::max_element(probabilities);
  CHECK(*best == prediction.probability);
  CHECK(explanation.scores.choices[static_cast<std::size_t>(best - probabilities.begin())] ==
        prediction.label);
}

TEST_CASE("steps come in the order of computing, each with its formula") {
  Run run = small_run(AttentionKind::learned);
  const Explanation explanation = explained(run);
  const auto& records = explanation.recorder.all();
  CHECK(records.front().path == "static");
  CHECK(records.back().path == "contextual");
  const auto formula_of = [&](const std::string& path) {
    return std::ranges::find(records, path, &Recorder::Record::path)->formula;
  };
  CHECK(formula_of("input").formula == "e_i + p_i");
  CHECK(formula_of("encoder.layers.1.output").formula == "x'_i + f_i");
  CHECK(formula_of("encoder.layers.1.attention.q").symbol == "q_i");
}
