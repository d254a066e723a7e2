#include "train/inference/trained_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "core/joining_thread.h"
#include "core/memory.h"
#include "core/random.h"
#include "datasets/text.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/run/run.h"

namespace qkv::trained_model_test {

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

/// Tasks that answer about texts.
constexpr std::array answering_kinds = {
    kinds[0],
    kinds[1],
    kinds[2],
    Example{TaskKind::coreference, "0\t3\tp q x it\n1\t2\tw s it t\n", "p q it"},
    Example{TaskKind::tagging, "p A\nq B\n\nw A\nx B\n", "p q x"},
    Example{TaskKind::masked_language_model, "p q x\nw s t\n", "p [MASK] x"},
};

/// Texts of up to nine words of the example or others, so that some cannot be answered: they are
/// empty, too long, not UTF-8 or about nothing.
std::vector<std::string> drawn_texts(const Example& kind, std::size_t count) {
  const auto known = words(kind.text);
  const Random random(5, Purpose::testing);
  std::vector<std::string> texts(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t length = random.bits(16 * i) % 10;
    for (std::uint32_t word = 0; word < length; ++word) {
      const std::uint32_t drawn = random.bits(16 * i + word + 1) % 40;
      texts[i] += drawn == 39 ? "\xff" : drawn > 35 ? "new" : known[drawn % known.size()];
      texts[i] += ' ';
    }
  }
  return texts;
}

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
  if (model.continues()) {
    said.text = model.generate(text, 5);
    const std::string prompt(text);
    const std::vector<std::string> prompts = {prompt, prompt + prompt, prompt};
    const auto texts = model.generate(prompts, 5);
    CHECK(texts.front() == said.text);
    CHECK(texts.back() == said.text);
  }
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

TEST_CASE("the predictions of many texts have the bits of each one's, and its error") {
  const TempDir dir;
  for (const ModelKind model : {ModelKind::encoder, ModelKind::recurrent, ModelKind::convolution,
                                ModelKind::static_embedding})
    for (const Example& kind : answering_kinds) {
      Config config = tiny_config(kind.task, dir.write("data.txt", kind.data), 8);
      if (config.model.kind != ModelKind::encoder_decoder) config.model.kind = model;
      if (model == ModelKind::static_embedding && kind.task != TaskKind::classify) continue;
      CAPTURE(to_toml(config));
      const TrainedModel trained(SavedModel{start_run(config)});
      const std::vector<std::string> texts = drawn_texts(kind, 1200);
      const auto many = trained.predict(texts);
      REQUIRE(many.size() == texts.size());
      for (std::size_t i = 0; i < texts.size(); ++i) {
        CAPTURE(texts[i]);
        std::vector<Prediction> one;
        const auto error = error_of<UserError>([&] { one = trained.predict(texts[i]); });
        CHECK(many[i].error == (one.empty() ? error : ""));
        REQUIRE(many[i].predictions.size() == one.size());
        for (std::size_t word = 0; word < one.size(); ++word) {
          const Prediction& found = many[i].predictions[word];
          CHECK(found.text == texts[i]);
          CHECK(found.index == one[word].index);
          CHECK(found.label == one[word].label);
          CHECK(found.choices == one[word].choices);
          CHECK(found.logits == one[word].logits);
          CHECK(found.probabilities == one[word].probabilities);
          CHECK(found.probability == one[word].probability);
        }
      }
    }
}

TEST_CASE("predictions reuse the memory of the pool that the caller has in use") {
  const TempDir dir;
  const TrainedModel model(SavedModel{start_run(
      tiny_config(TaskKind::classify, dir.write("data.txt", answering_kinds[1].data), 8))});
  const std::vector<std::string> texts = drawn_texts(answering_kinds[1], 200);
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  model.predict(texts);
  const std::size_t first = pool.system_bytes();
  CHECK(first > 0);
  model.predict(texts);
  CHECK(pool.system_bytes() == first);
}

TEST_CASE("an ensemble predicts many texts as it predicts each") {
  const TempDir dir;
  std::vector<SavedModel> models;
  for (const std::uint64_t seed : {1, 2}) {
    Config config =
        tiny_config(TaskKind::classify, dir.write("data.txt", answering_kinds[1].data), 8);
    config.seed = seed;
    models.push_back({start_run(config)});
  }
  const TrainedModel ensemble(std::move(models));
  const std::vector<std::string> texts = {"p q", "", "s"};
  const auto many = ensemble.predict(texts);
  CHECK(many[0].predictions[0].probabilities == ensemble.predict("p q")[0].probabilities);
  CHECK(many[1].error == error_of<UserError>([&] { ensemble.predict(""); }));
  CHECK(many[1].predictions.empty());
  CHECK(many[2].predictions[0].probabilities == ensemble.predict("s")[0].probabilities);
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

}  // namespace qkv::trained_model_test
