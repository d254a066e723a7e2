#include "train/run/run_difference.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/temp_dir.h"
#include "train/loop/trainer.h"
#include "train/run/run.h"

namespace qkv::run_difference_test {

namespace {

Checkpoint sample() {
  return {.step = 7,
          .config = "name = \"a\"\n",
          .model = {{"a.weight", Tensor::from({1, 2, 3}, {3})}, {"b", Tensor::scalar(0)}},
          .optimizer = {{"moment.b", Tensor::scalar(0.5)}},
          .vocabulary = {{"tokens", {"x", "y"}}},
          .progress = {{"best_score", 0.25}},
          .metrics = "{\"step\":5,\"split\":\"train\",\"loss\":0.5}\n",
          .data_hash = "01"};
}

/// Where a checkpoint differs from the sample after `change`; empty: nowhere.
template <class Change>
std::string place_of(Change change) {
  Checkpoint changed = sample();
  change(changed);
  const auto difference = first_difference(sample(), changed);
  return difference ? difference->place : "";
}

std::vector<MetricsEvent> events(const std::string& lines) {
  return parse_metrics(lines).events;
}

}  // namespace

TEST_CASE("equal checkpoints do not differ") {
  CHECK(place_of([](Checkpoint&) {}) == "");
}

TEST_CASE("a single bit of a tensor is a difference, named with its element") {
  const float next = std::nextafter(2.0F, 3.0F);
  CHECK(place_of([&](Checkpoint& c) {
          c.model["a.weight"] = Tensor::from({1, next, 4}, {3});
        }) == "/model/a.weight[1]");
  CHECK(place_of([](Checkpoint& c) { c.model["b"] = Tensor::scalar(-0.0); }) == "/model/b[0]");
  CHECK(place_of([](Checkpoint& c) { c.optimizer["moment.b"] = Tensor::scalar(0.25); }) ==
        "/optimizer/moment.b[0]");
  Checkpoint other = sample();
  other.model["b"] = Tensor::scalar(0.1);
  const Difference found = first_difference(sample(), other).value();
  CHECK(found.expected == "0");
  CHECK(found.found == "0.1");
}

TEST_CASE("tensors that are missing, additional or of another type are differences") {
  CHECK(place_of([](Checkpoint& c) { c.model.erase("b"); }) == "/model/b");
  CHECK(place_of([](Checkpoint& c) { c.optimizer["moment.c"] = Tensor::scalar(1); }) ==
        "/optimizer/moment.c");
  CHECK(place_of([](Checkpoint& c) { c.model["b"] = Tensor::zeros({1}); }) == "/model/b");
  CHECK(place_of([](Checkpoint& c) { c.model["b"] = Tensor::scalar(0, DType::float64); }) ==
        "/model/b");
}

TEST_CASE("whatever else a checkpoint holds is compared, too") {
  CHECK(place_of([](Checkpoint& c) { c.step = 8; }) == "/step");
  CHECK(place_of([](Checkpoint& c) { c.config += "seed = 2\n"; }) == "/config");
  CHECK(place_of([](Checkpoint& c) { c.vocabulary["tokens"][1] = "z"; }) == "/vocabulary/tokens");
  CHECK(place_of([](Checkpoint& c) { c.progress["best_score"] = std::nextafter(0.25, 1.0); }) ==
        "/progress/best_score");
  CHECK(place_of([](Checkpoint& c) { c.metrics.clear(); }) ==
        "/progress/metrics, number of evaluations");
  CHECK(place_of([](Checkpoint& c) { c.data_hash = "02"; }) == "/progress/data_hash");
  CHECK(place_of([](Checkpoint& c) { c.init = "loaded: nothing"; }) == "/progress/init");
}

TEST_CASE("of evaluations only the times may differ") {
  const auto first =
      events(R"({"step":5,"split":"train","loss":0.5,"seconds":1.0,"tokens_per_second":9.0})"
             "\n"
             R"({"step":5,"split":"valid","loss":0.25,"accuracy":1.0,"seconds":1.5})"
             "\n");
  const auto with = [](const std::string& loss, const std::string& accuracy) {
    return events(R"({"step":5,"split":"train","loss":0.5})"
                  "\n"
                  R"({"step":5,"split":"valid","loss":)" +
                  loss + R"(,"accuracy":)" + accuracy +
                  R"(,"seconds":3.0,"tokens_per_second":1.0})"
                  "\n");
  };
  CHECK(!first_difference(first, with("0.25", "1.0")));
  const Difference loss = first_difference(first, with("0.25000000000000006", "1.0")).value();
  CHECK(loss.place == "valid at step 5: loss");
  CHECK(loss.expected == "0.25");
  CHECK(first_difference(first, with("0.25", "0.5")).value().place == "valid at step 5: accuracy");
  const Difference count = first_difference(first, std::span(first).first(1)).value();
  CHECK(count.place == "number of evaluations");
  CHECK(count.expected == "2");
  CHECK(count.found == "1");
}

TEST_CASE("a resume that restores the last bits of the optimizer's state wrongly is noticed") {
  Config config;
  config.name = "tiny";
  config.task.train = QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";
  config.model = {.width = 4, .heads = 1, .feed_forward = 4};
  config.train.steps = 8;
  config.train.batch = 4;
  config.train.eval_every = config.train.checkpoint_every = 4;
  const TempDir dir;
  const RunFolder whole(dir.path() / "whole");
  Callback quiet;
  whole.create();
  Run run = start_run(config);
  train(run, whole, quiet);
  const auto half = whole.checkpoint(4);
  const auto resumed = [&](const Checkpoint& from, const std::string& name) {
    const RunFolder folder(dir.path() / name);
    folder.create();
    Run run = restore_run(config, from, half);
    train(run, folder, quiet);
    return read_checkpoint(folder.last());
  };
  Checkpoint from = read_checkpoint(half);
  const Checkpoint expected = read_checkpoint(whole.last());
  const auto difference = first_difference(expected, resumed(from, "exact"));
  CHECK_MESSAGE(!difference, difference.value_or(Difference()).place);
  // The lowest bit of every value: that of a single one may be lost in rounding.
  Tensor& moment = from.optimizer.at("second_moment.encoder.layers.0.attention.w_q.weight");
  auto values = moment.values();
  for (auto& value : values) value = std::nextafter(static_cast<float>(value), 1.0F);
  moment = Tensor::from(values, moment.shape());
  CHECK(first_difference(expected, resumed(from, "inexact")));
}

}  // namespace qkv::run_difference_test
