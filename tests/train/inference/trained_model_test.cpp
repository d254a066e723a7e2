#include "train/inference/trained_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "core/joining_thread.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/run/run.h"

using namespace qkv;

namespace {

struct Example {
  TaskKind task;
  std::string_view data;
  std::string_view text;
};
constexpr std::array kinds = {
    Example{TaskKind::word_sense, "a\t2\tp q x q\nb\t3\tw s t x\n", "p q x"},
    Example{TaskKind::classify, "a\tp q\nb\tw s\n", "p s"},
    Example{TaskKind::translate, "a b\tx y\nb a\ty x\n", "a b"},
    Example{TaskKind::language_model, "the cat saw the dog and the dog saw the cat\n", "the cat"},
};

SavedModel untrained_model(const TempDir& dir, const Example& kind) {
  return {start_run(tiny_config(kind.task, dir.write("data.txt", kind.data), 8))};
}

/// All that a model says about a text.
struct Said {
  std::vector<std::vector<double>> probabilities;
  std::vector<double> contextual, attention;
  std::string text;

  bool operator==(const Said&) const = default;
};

Said said_by(const TrainedModel& model, std::string_view text) {
  Said said;
  for (const Prediction& answer : model.predict(text))
    said.probabilities.push_back(answer.probabilities);
  said.contextual = model.embed(text).contextual.values();
  for (const Tensor& layer : model.attend(text).layers)
    for (const double weight : layer.values()) said.attention.push_back(weight);
  if (model.continues()) said.text = model.generate(text, 5);
  return said;
}

}  // namespace

TEST_CASE("a trained model has the vectors and attention weights of its network") {
  for (const Example& kind : kinds) {
    INFO(kind.data);
    const TempDir dir;
    const TrainedModel model(untrained_model(dir, kind));
    const LoadedModel& parts = model.parts();
    const Sentence sentence = parts.task->read(kind.text);
    const Index time = std::ssize(sentence.ids);
    Recorder recorder(*parts.network);
    Context context({.recorder = &recorder});
    (*parts.network->model)(Indices(sentence.ids, {1, time}), {}, context);

    const TextVectors vectors = model.embed(kind.text);
    CHECK(vectors.tokens == sentence.words);
    CHECK(vectors.contextual.shape() == Shape{time, 8});
    CHECK(vectors.contextual.values() == recorder.at("contextual").values());
    CHECK(vectors.static_vectors.values() == recorder.at("static").values());

    const TextAttention attention = model.attend(kind.text);
    REQUIRE(attention.layers.size() == 1);
    CHECK(attention.layers[0].shape() == Shape{2, time, time});
    const auto weights = std::ranges::find(recorder.all(), "weights", &Recorder::Record::name);
    CHECK(attention.layers[0].values() == weights->value.values());
    CHECK(attention.cross.empty() == (kind.task != TaskKind::translate));
    CHECK(attention.outputs.empty() == (kind.task != TaskKind::translate));
  }
}

TEST_CASE("threads that share a trained model hear what one hears") {
  for (const Example& kind : kinds) {
    INFO(kind.data);
    const TempDir dir;
    const TrainedModel model(untrained_model(dir, kind));
    const Said alone = said_by(model, kind.text);
    std::array<Said, 4> heard;
    {
      std::vector<JoiningThread> threads;
      for (Said& one : heard) threads.emplace_back([&] { one = said_by(model, kind.text); });
    }
    for (const Said& one : heard) CHECK(one == alone);
  }
}

TEST_CASE("what a trained model cannot do is an error that says why") {
  const TempDir dir;
  const TrainedModel model(untrained_model(dir, kinds[1]));
  CHECK(error_of<UserError>([&] {
          model.generate("p", 3);
        }).starts_with("the model was not trained to continue a text"));
  CHECK(error_of<UserError>([&] { model.predict(""); }).starts_with("the sentence is empty"));
  CHECK(error_of<UserError>([&] { model.embed("\xff"); }) == "the text is not valid UTF-8");
  CHECK(error_of<UserError>([&] { model.predict("\xff"); }) == "the text is not valid UTF-8");
  CHECK(error_of<UserError>([&] { load(dir.path() / "none"); }).find("none") != std::string::npos);
}
