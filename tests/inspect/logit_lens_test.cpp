#include "inspect/logit_attribution.h"

#include <doctest/doctest.h>

#include "layers/transformer.h"
#include "tests/support/modules.h"

namespace qkv::logit_lens_test {

namespace {

Run run_of(const ModelOptions& model) {
  Config config;
  config.name = "small";
  config.task.train = QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";
  config.model = model;
  Run run = start_run(config);
  tests::assign_normal(*run.network);
  return run;
}

}  // namespace

TEST_CASE("the lens ends in the model's own logits, and begins in those of the input") {
  for (const auto norm : {NormKind::pre, NormKind::post, NormKind::none}) {
    CAPTURE(static_cast<int>(norm));
    Run run = run_of({.width = 8, .layers = 2, .heads = 2, .feed_forward = 12, .norm = norm});
    const Explanation explanation = explain(run, run.task->read("money bank grows"), 1);
    const auto lens = logit_lens(run, explanation);
    REQUIRE(lens.size() == 3);
    CHECK(lens[2].scores.logits.values() == explanation.scores.logits.values());
    CHECK(lens[1].scores.logits.values() != explanation.scores.logits.values());
    Tensor input = slice(explanation.recorder.at("input"), 1, 1, 2);
    if (norm == NormKind::pre)
      for (const auto& [path, stack] : modules<Transformer>(*run.network))
        input = (*stack->norm)(input);
    const auto expected = run.network->logits(input).values(),
               found = lens[0].scores.logits.values();
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  }
}

TEST_CASE("a model without blocks has no lens") {
  Run run = run_of({.kind = ModelKind::static_embedding, .width = 8});
  CHECK(logit_lens(run, explain(run, run.task->read("money bank grows"), 1)).empty());
}

}  // namespace qkv::logit_lens_test
