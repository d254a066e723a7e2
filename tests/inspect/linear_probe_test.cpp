#include "inspect/linear_probe.h"

#include <doctest/doctest.h>

#include "inspect/labelled_text.h"
#include "tests/support/randn.h"

namespace qkv::linear_probe_test {

namespace {

Run run_of(const std::string& data, ModelKind kind = ModelKind::encoder) {
  Config config;
  config.name = "small";
  config.task.train = QKV_SOURCE_DIR "/datasets/" + data + "/valid.tsv";
  config.model = {.kind = kind, .width = 16, .layers = 2, .heads = 2};
  return start_run(config);
}

std::vector<LabelledText> texts_of(const Run& run) {
  return read_labelled_texts(run, run.config.task.train, silent_reading);
}

}  // namespace

TEST_CASE("ridge regression without a penalty separates what a plane separates") {
  const Tensor x = tests::randn({50, 4}, DType::float64);
  std::vector<Index> labels;
  for (Index i = 0; i < 50; ++i) labels.push_back(slice(x, 0, i, i + 1).values()[2] > 0.3);
  const auto found = RidgeClassifier(3 * x + 7, labels, 2, 1e-9).predict(3 * x + 7);
  std::size_t right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) right += found[i] == labels[i];
  CHECK(right >= 47);
}

TEST_CASE("a large penalty leaves the most frequent label") {
  const Tensor x = tests::randn({9, 3}, DType::float64);
  const std::vector<Index> labels = {2, 2, 0, 2, 1, 2, 2, 0, 2};
  for (const Index label : RidgeClassifier(x, labels, 3, 1e12).predict(x)) CHECK(label == 2);
}

TEST_CASE("the static vector of one word tells nothing, and its contextual one more") {
  const Run run = run_of("bank");
  const auto texts = texts_of(run);
  const auto probes = linear_probes(run, texts, texts, silent_reading);
  REQUIRE(probes.size() == 4);
  CHECK(probes[0].label == "input");
  CHECK(probes[3].label == "contextual");
  CHECK(probes[3].accuracy > probes[0].accuracy);
}

TEST_CASE("a control task by types of words is one that static vectors solve") {
  const Run run = run_of("sequences/induction", ModelKind::static_embedding);
  const auto texts = texts_of(run);
  const auto probes = linear_probes(run, texts, texts, silent_reading);
  REQUIRE(probes.size() == 2);
  CHECK(probes[0].control == 1);  // 12 letters in 16 dimensions
  CHECK(probes[0].selectivity == doctest::Approx(probes[0].accuracy - 1));
}

TEST_CASE("texts without labels cannot be probed") {
  const Run run = run_of("bank");
  const LabelledText text{
      .text = "money bank grows", .sentence = run.task->read("money bank grows"), .index = 1};
  CHECK_THROWS_AS(linear_probes(run, {text}, {text}, silent_reading), UserError);
}

}  // namespace qkv::linear_probe_test
