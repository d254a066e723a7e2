#include "inspect/logit_attribution.h"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/support/modules.h"

namespace qkv::logit_attribution_test {

namespace {

Run run_of(const ModelOptions& model, TaskKind task = TaskKind::word_sense,
           const std::string& data = "bank") {
  Config config;
  config.name = "small";
  config.task.kind = task;
  config.task.train = QKV_SOURCE_DIR "/datasets/" + data + "/valid.tsv";
  config.model = model;
  config.model.max_length = 64;
  Run run = start_run(config);
  std::uint64_t stream = 0;
  for (const auto& [path, parameter] : parameters(*run.network))  // biases and gains, too
    parameter->assign(parameter->value() +
                      0.5 * tests::randn(parameter->shape(), DType::float32, stream++));
  return run;
}

std::optional<LogitAttribution> attributed(const Run& run, const Explanation& explanation) {
  return logit_attribution(run, explanation);
}

double sum_of(const LogitAttribution& attribution, double LogitAttribution::Part::*member) {
  return std::accumulate(
      attribution.parts.begin(), attribution.parts.end(), 0.0,
      [&](double sum, const LogitAttribution::Part& part) { return sum + part.*member; });
}

void check_sums(const Run& run, const std::string& text, Index index) {
  const Explanation explanation = explain(run, run.task->read(text), index);
  const auto attribution = attributed(run, explanation);
  REQUIRE(attribution);
  const auto logits = explanation.scores.logits.values();
  const auto logit = [&](Index i) { return logits[static_cast<std::size_t>(i)]; };
  CHECK(std::abs(sum_of(*attribution, &LogitAttribution::Part::logit) -
                 logit(attribution->answer)) < 1e-4);
  CHECK(std::abs(sum_of(*attribution, &LogitAttribution::Part::difference) -
                 (logit(attribution->answer) - logit(attribution->runner_up))) < 1e-4);
}

const ModelOptions small{.width = 8, .layers = 2, .heads = 2, .feed_forward = 12};

/// `small` changed by `change`.
template <class Change>
ModelOptions with(Change change) {
  ModelOptions options = small;
  change(options);
  return options;
}

}  // namespace

TEST_CASE("the parts of a logit sum to it for every norm, attention and positional encoding") {
  for (const auto norm : {NormKind::pre, NormKind::post, NormKind::none})
    check_sums(run_of(with([&](ModelOptions& o) { o.norm = norm; })), "money bank grows", 1);
  for (const auto attention : {AttentionKind::uniform, AttentionKind::parameter_free})
    check_sums(run_of(with([&](ModelOptions& o) { o.attention = attention; })), "money bank grows",
               1);
  for (const auto position : {PositionKind::none, PositionKind::learned, PositionKind::rotary})
    check_sums(run_of(with([&](ModelOptions& o) { o.position = position; })), "money bank grows",
               1);
  check_sums(run_of(with([](ModelOptions& o) { o.bias = false; })), "money bank grows", 1);
  check_sums(run_of(with([](ModelOptions& o) { o.feed_forward = 0; })), "money bank grows", 1);
}

TEST_CASE("the parts of a logit sum to it where the output layer reads the mean over all words") {
  check_sums(run_of(small, TaskKind::classify, "sentiment"), "good cast but dull story", 0);
}

TEST_CASE("every head and feed-forward block is a part, between the embedding and the biases") {
  const Run run = run_of(small);
  const auto attribution = attributed(run, explain(run, run.task->read("money bank grows"), 1));
  std::vector<std::string> ids;
  for (const auto& part : attribution->parts)
    if (part.component) ids.push_back(part.component->id);
  CHECK(ids == std::vector<std::string>{"0.0", "0.1", "0.ff", "1.0", "1.1", "1.ff"});
  CHECK(attribution->parts.front().label == "embedding");
  CHECK(attribution->parts.back().label == "output layer, bias");
}

TEST_CASE("without norms, what a head of the last layer writes is what its ablation takes away") {
  const Run run = run_of(with([](ModelOptions& o) {
    o.norm = NormKind::none;
    o.feed_forward = 0;
  }));
  const Sentence sentence = run.task->read("money bank grows");
  const Explanation explanation = explain(run, sentence, 1);
  const auto attribution = attributed(run, explanation);
  const Component head = component_of(components(*run.network), "1.1");
  const Hook hook = hook_of({{head.activation, head.mask, Tensor::scalar(0)}});
  Context context({.hook = &hook});
  const Tensor ablated = run.task->scores(*run.network, sentence, 1, context).logits;
  const double taken =
      (explanation.scores.logits - ablated).values()[static_cast<std::size_t>(attribution->answer)];
  const auto part = std::ranges::find_if(
      attribution->parts, [](const auto& p) { return p.component && p.component->id == "1.1"; });
  CHECK(part->logit == doctest::Approx(taken).epsilon(1e-4));
}

TEST_CASE("logits that are no linear function of the last vectors are not attributed") {
  const Run run = run_of(small, TaskKind::coreference, "pronoun");
  CHECK_FALSE(
      attributed(run, explain(run, run.task->read("the animal slept because it was tired"), 4)));
}

TEST_CASE("a model without blocks is not attributed") {
  const Run run = run_of({.kind = ModelKind::static_embedding, .width = 8});
  CHECK_FALSE(attributed(run, explain(run, run.task->read("money bank grows"), 1)));
}

}  // namespace qkv::logit_attribution_test
