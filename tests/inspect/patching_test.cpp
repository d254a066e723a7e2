#include "inspect/patching.h"

#include <doctest/doctest.h>

#include "tests/support/modules.h"

namespace qkv::patching_test {

namespace {

const std::string clean = "money bank grows", corrupt = "river bank flows";

/// A model that answers differently to the two texts.
Run run_of(const ModelOptions& model) {
  Config config;
  config.name = "small";
  config.task.train = QKV_SOURCE_DIR "/datasets/bank-twins/train.tsv";
  config.model = model;
  Run run = start_run(config);
  tests::assign_normal(*run.network);
  Parameter& bias = *run.network->head->bias;
  const auto logits = [&](const std::string& text) {
    return explain(run, run.task->read(text), 1).scores.logits;
  };
  bias.assign((logits(clean) + logits(corrupt)) * -0.5);
  return run;
}

Patching patched(const Run& run, const std::string& first, const std::string& second) {
  return patched(run, {{run.task->read(first), run.task->read(second), 1, 1}});
}

const ModelOptions small{.width = 8, .layers = 2, .heads = 2, .feed_forward = 12};

std::string error_of(const Run& run, const std::string& first, const std::string& second) {
  try {
    patched(run, first, second);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the whole residual stream recovers everything, where nothing differs nothing") {
  const Patching found = patched(run_of(small), clean, corrupt);
  CHECK(found.clean > 0);
  CHECK(found.corrupt < 0);
  REQUIRE(found.residual.size() == 3);
  for (const PatchedRow& row : found.residual) CHECK(row.all == doctest::Approx(1).epsilon(1e-4));
  CHECK(found.residual[0].positions[1] == doctest::Approx(0).epsilon(1e-4));  // "bank" in both
  CHECK(found.residual[2].positions[1] ==
        doctest::Approx(1).epsilon(1e-4));  // the word asked about
  CHECK(found.residual[2].positions[0] == doctest::Approx(0).epsilon(1e-4));
}

TEST_CASE(
    "every head, attention and feed-forward output has a row with a value for each position") {
  const Patching found = patched(run_of(small), clean, corrupt);
  CHECK(found.attention.size() == 2);
  CHECK(found.feed_forward.size() == 2);
  CHECK(found.heads.size() == 4);
  CHECK(found.heads[3].label == "layer 1, head 1");
  CHECK(found.heads[3].positions.size() == 3);
}

TEST_CASE("without norms, all heads of the only layer recover what its attention output does") {
  const Run run =
      run_of({.width = 8, .layers = 1, .heads = 2, .feed_forward = 0, .norm = NormKind::none});
  const Patching found = patched(run, clean, corrupt);
  CHECK(found.heads[0].all + found.heads[1].all ==
        doctest::Approx(found.attention[0].all).epsilon(1e-4));
}

TEST_CASE("over several pairs the fraction is that of the mean differences") {
  const Run run = run_of(small);
  const Sentence a = run.task->read(clean), b = run.task->read(corrupt);
  const Patching one = patched(run, {{a, b, 1, 1}}), other = patched(run, {{b, a, 1, 1}}),
                 both = patched(run, {{a, b, 1, 1}, {b, a, 1, 1}});
  const auto difference = [](const Patching& p) {
    return p.corrupt + p.heads[0].all * (p.clean - p.corrupt);
  };
  CHECK(both.pairs == 2);
  CHECK(both.clean == doctest::Approx((one.clean + other.clean) / 2));
  CHECK(difference(both) ==
        doctest::Approx((difference(one) + difference(other)) / 2).epsilon(1e-4));
}

TEST_CASE("texts that cannot be compared are named") {
  const Run run = run_of(small);
  CHECK(
      error_of(run, clean, "river bank") ==
      "\"river bank\" has 2 tokens and \"money bank grows\" has 3; patching goes from position to "
      "position, so take texts of one length");
  CHECK(error_of(run, clean, clean).ends_with("take texts with different answers"));
  CHECK(error_of(run_of({.kind = ModelKind::static_embedding, .width = 8}), clean, corrupt)
            .starts_with("the model is no single stack of attention blocks"));
}

}  // namespace qkv::patching_test
