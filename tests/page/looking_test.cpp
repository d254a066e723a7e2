#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "inspect/documents/attend.h"
#include "inspect/documents/embed.h"
#include "inspect/documents/explain.h"
#include "inspect/documents/predict.h"
#include "inspect/loss_gradients.h"
#include "page/engine.h"
#include "tests/support/modules.h"
#include "tests/support/temp_dir.h"
#include "train/run/run.h"

using namespace qkv;
using page::Engine;

namespace {

/// A model with a text that it reads.
struct Case {
  TaskKind task;
  std::string train;
  ModelOptions model;
  std::string text;
};

const std::string money = "money bank grows";
const std::vector<Case> kinds = {
    {TaskKind::word_sense, "bank-twins/valid.tsv", {.width = 8, .layers = 2, .heads = 2}, money},
    {TaskKind::word_sense,
     "bank-twins/valid.tsv",
     {.width = 8, .heads = 2, .position = PositionKind::learned, .norm = NormKind::post},
     "zebra, Bank it"},
    {TaskKind::word_sense,
     "bank-twins/valid.tsv",
     {.width = 8, .attention = AttentionKind::parameter_free},
     money},
    {TaskKind::classify,
     "sentiment/valid.tsv",
     {.kind = ModelKind::recurrent, .width = 8},
     "a bad plot"},
    {TaskKind::classify,
     "sentiment/valid.tsv",
     {.kind = ModelKind::convolution, .width = 9},
     "a plot"},
    {TaskKind::word_sense,
     "bank-twins/valid.tsv",
     {.kind = ModelKind::fixed_length, .width = 8},
     money},
    {TaskKind::coreference,
     "pronoun/valid.tsv",
     {.width = 8, .heads = 2},
     "the bag couldn't hold it"},
    {TaskKind::translate,
     "sequences/reverse/valid.tsv",
     {.kind = ModelKind::encoder_decoder, .width = 8, .heads = 2},
     "j e h"},
    {TaskKind::language_model,
     "random/text.txt",
     {.kind = ModelKind::decoder, .width = 8, .heads = 2, .max_length = 12},
     "UP0"},
    {TaskKind::tagging, "tagging/valid.conll", {.width = 8, .heads = 2}, "sydney wrote to"},
    {TaskKind::masked_language_model,
     "bank-twins/valid.tsv",
     {.width = 8, .heads = 2},
     "money [MASK] grows"},
};

Run run_of(const Case& kind) {
  Config config;
  config.name = "small";
  config.task.kind = kind.task;
  config.task.train = QKV_SOURCE_DIR "/datasets/" + kind.train;
  config.model = kind.model;
  Run run = start_run(config);
  tests::assign_normal(*run.network);
  return run;
}

std::string bytes_of(Network& network) {
  std::string bytes;
  for (const auto& [path, parameter] : parameters(network)) {
    const auto values = parameter->value().data<float>();
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  return bytes;
}

Json load_request(const Run& run) {
  return object({{"call", "load"},
                 {"model", "m"},
                 {"config", to_toml(run.config)},
                 {"vocabulary", run.task->vocabularies()}});
}

void load(Engine& engine, const Run& run) {
  engine.files()["parameters"] = bytes_of(*run.network);
  REQUIRE(Json::parse(engine.call(load_request(run).dump())).contains("parameters"));
  REQUIRE(engine.files().empty());
}

/// An engine with a run's model under the name "m".
class Page {
 public:
  explicit Page(const Run& run) { load(engine_, run); }
  Json call(Json request) {
    request["model"] = "m";
    Json document = Json::parse(engine_.call(request.dump()));
    INFO(request.dump(), " ", document.dump());
    CHECK_FALSE(document.contains("error"));
    return document;
  }
  std::string error(Json request) {
    request["model"] = "m";
    return Json::parse(engine_.call(request.dump())).value("error", "no error");
  }

 private:
  Engine engine_;
};

/// A document after its way as a text, in which numbers that are not finite become null.
Json as_read(const Json& document) {
  return Json::parse(text_of(document));
}

Json predictions(const LoadedModel& model, const std::string& text) {
  const auto words = documents::words_of(text, model.task->tokenizer());
  Json list = Json::array();
  for (const Prediction& prediction : model.task->predict(*model.network, text))
    list.push_back(documents::prediction(prediction, model.task->read(text), words));
  return as_read(object({{"predictions", list}}));
}

Sentence written(const LoadedModel& model, const std::string& text) {
  Sentence sentence = model.task->read(text);
  sentence.written = model.task->write(*model.network, sentence, "");
  return sentence;
}

Json attention(const LoadedModel& model, const std::string& text) {
  const Sentence sentence = written(model, text);
  return documents::attend(documents::attention_in(model, sentence, recorded(model, sentence)));
}

Json explanation(const LoadedModel& model, const Sentence& sentence, Index index) {
  const Explanation found = explain(model, sentence, index);
  return as_read(documents::explain(model, found, {}, {}, documents::Parameters::shown));
}

/// Whether the calls give what the documents say of this model.
void check_documents(Page& page, const Json& changes, const LoadedModel& model,
                     const std::string& text) {
  const auto call = [&](Json request) {
    request["text"] = text;
    request["changes"] = changes;
    return page.call(request);
  };
  CHECK(call({{"call", "predict"}}) == predictions(model, text));
  CHECK(call({{"call", "attend"}}) == attention(model, text));
  const Sentence sentence = model.task->read(text);
  CHECK(call({{"call", "explain"}, {"index", 1}, {"parameters", true}}) ==
        explanation(model, sentence, 1));
  CHECK(call({{"call", "embed"}, {"index", 1}})["sentences"][0] ==
        documents::vectors(word_vectors(model, sentence, -1)[1]));
  const auto words = word_vectors(model, sentence, -1);
  const auto all =
      call({{"call", "embed"}})["sentences"][0]["contextual"].get<std::vector<double>>();
  CHECK(all == mean(stacked(words, &WordVector::contextual), 0).values());
}

/// -log p of a choice.
double loss_of(const Json& prediction, const std::string& choice) {
  return -std::log(prediction["probabilities"][choice].get<double>());
}

}  // namespace

TEST_CASE("the page's engine gives the documents of the commands, for every kind of model") {
  for (const Case& kind : kinds) {
    CAPTURE(kind.text);
    const Run run = run_of(kind);
    Page page(run);
    check_documents(page, Json::object(), run, kind.text);
  }
}

TEST_CASE("a model that the page loads from bytes is that of the run's checkpoint") {
  const TempDir folder;
  for (const Case& kind : kinds) {
    const Run run = run_of(kind);
    const auto file = folder.path() / fmt::format("{}.h5", &kind - kinds.data());
    write_checkpoint(file, run.checkpoint({}));
    Page page(run);
    CHECK(page.call({{"call", "predict"}, {"text", kind.text}}) ==
          predictions(load_model(file), kind.text));
  }
}

TEST_CASE("changes of the page are the interventions of probes, one after the other") {
  for (const Case& kind : kinds) {
    CAPTURE(kind.text);
    const Run run = run_of(kind);
    const bool has_queries = std::ranges::any_of(
        run.parameters, [](const auto& named) { return named.parameter->role() == Role::query; });
    Page page(run);
    const LoadedModel without = intervened(run, Intervention::without_positions);
    check_documents(page, {{"without_positions", true}, {"shuffled", false}}, without, kind.text);
    check_documents(page, {{"uniform", true}}, intervened(run, Intervention::uniform_attention),
                    kind.text);
    if (has_queries)
      check_documents(page, {{"without_positions", true}, {"shuffled", true}},
                      intervened(without, Intervention::shuffled_queries), kind.text);
    else
      check_documents(page, {{"shuffled", true}, {"off", "0.7"}}, run, kind.text);
    check_documents(page, Json(), run, kind.text);
  }
}

TEST_CASE("a component that is off in the page is zero, in every document") {
  Run run = run_of(kinds[0]);
  Page page(run);
  const Json changes = {{"off", "1.1"}};
  const Json shown =
      page.call({{"call", "explain"}, {"text", money}, {"index", 1}, {"changes", changes}});
  const Json answers = page.call({{"call", "predict"}, {"text", money}, {"changes", changes}});
  CHECK(shown["logits"] == answers["predictions"][0]["logits"]);
  const Json vectors =
      page.call({{"call", "embed"}, {"text", money}, {"index", 1}, {"changes", changes}});

  Parameter& w_o = stacks_of(*run.network)[0].second->layers[1].attention.w_o->weight;
  w_o.assign(w_o.value().detach() * (1 - range_mask(4, 8, 8)));
  const auto expected = run.task->predict(*run.network, money).front();
  CHECK(answers["predictions"][0]["probability"].get<double>() ==
        doctest::Approx(expected.probability).epsilon(1e-5));
  const auto found = vectors["sentences"][0]["contextual"].get<std::vector<double>>();
  const auto vector = word_vectors(run, run.task->read(money), -1)[1].contextual;
  for (std::size_t i = 0; i < vector.size(); ++i)
    CHECK(found[i] == doctest::Approx(vector[i]).epsilon(1e-5));
}

TEST_CASE("the page ablates each component of a model in the loss of its own answer") {
  for (const std::size_t i : {0U, 6U, 9U}) {
    Page page(run_of(kinds[i]));
    const auto predicted = [&](const Json& changes) {
      return page.call(
          {{"call", "predict"}, {"text", kinds[i].text}, {"changes", changes}})["predictions"][0];
    };
    const Json whole = predicted(Json());
    const Json found =
        page.call({{"call", "ablate"}, {"text", kinds[i].text}, {"index", whole["index"]}});
    // The name of a word that comes twice in a sentence has its position.
    std::string choice;
    for (const auto& [name, probability] : whole["probabilities"].items())
      if (probability == whole["probability"]) choice = name;
    CHECK(found["whole"]["loss"].get<double>() ==
          doctest::Approx(loss_of(whole, choice)).epsilon(1e-4));
    REQUIRE(!found["components"].empty());
    for (const Json& component : found["components"]) {
      const double loss = component["zero"]["loss"].get<double>();
      CHECK(loss ==
            doctest::Approx(loss_of(predicted({{"off", component["id"]}}), choice)).epsilon(1e-4));
      CHECK(component["zero"]["loss_change"].get<double>() ==
            loss - found["whole"]["loss"].get<double>());
    }
  }
}

TEST_CASE(
    "the answer of an encoder-decoder in the page is its output, each token of which is "
    "explained") {
  const Run run = run_of(kinds[7]);
  Page page(run);
  const std::string text = kinds[7].text;
  const LabelledText output{.sentence = written(run, text)};
  CHECK(page.call({{"call", "ablate"}, {"text", text}})["whole"]["loss"].get<double>() ==
        answer_loss(run, output, hook_of({})).item());
  CHECK(page.call({{"call", "explain"},
                   {"text", text},
                   {"index", 0},
                   {"output", true},
                   {"parameters", true}}) == explanation(run, output.sentence, 0));
}

TEST_CASE("any word can be asked about in the page where the task is about words") {
  const auto asked = [](std::size_t kind, const Json& index) {
    Page page(run_of(kinds[kind]));
    std::vector<Json> found;
    const Json request = {{"call", "predict"}, {"text", kinds[kind].text}, {"index", index}};
    const Json document = page.call(request);
    for (const Json& prediction : document["predictions"])
      found.push_back(prediction.value("index", Json()));
    return found;
  };
  CHECK(asked(0, nullptr) == std::vector<Json>{1});
  CHECK(asked(0, 2) == std::vector<Json>{1, 2});
  CHECK(asked(0, 1) == std::vector<Json>{1});
  CHECK(asked(3, 1) == std::vector<Json>{nullptr});
  CHECK(asked(7, 1) == std::vector<Json>{nullptr});
  CHECK(asked(8, 0) == std::vector<Json>{2});
  CHECK(asked(10, 0) == std::vector<Json>{1, 0});
}

TEST_CASE("the page is told how a text is read, and why there is no answer") {
  Page senses(run_of(kinds[0])), pronouns(run_of(kinds[6])), masks(run_of(kinds[10]));
  CHECK(senses.call({{"call", "read"}, {"text", "zebra bank money."}}) ==
        object({{"tokens", {"zebra", "bank", "money", "."}},
                {"ids", senses.call({{"call", "read"}, {"text", "zebra bank money."}})["ids"]},
                {"targets", {1}},
                {"unknown", {true, false, false, true}},
                {"refusal", nullptr},
                {"words", 3},
                {"unknown_words", {"zebra"}},
                {"components", {"0.0", "0.1", "0.ff", "1.0", "1.1", "1.ff"}}}));
  const auto refusal = [](Page& page, const std::string& text) {
    return page.call({{"call", "read"}, {"text", text}})["refusal"];
  };
  CHECK(refusal(senses, "money grows") ==
        "\"money grows\" has none of the words that the model was trained on: bank");
  CHECK(refusal(pronouns, "it") ==
        "the sentence has no other word that the pronoun could refer to");
  CHECK(pronouns.call({{"call", "predict"}, {"text", "it"}, {"index", 0}})["predictions"].empty());
  CHECK(pronouns.call({{"call", "explain"}, {"text", "it"}, {"index", 0}})["labels"].empty());
  CHECK(pronouns.call({{"call", "attend"}, {"text", "it"}})["layers"].size() == 1);
  CHECK(refusal(masks, "money grows") ==
        "\"money grows\" has no [MASK]; write it in place of each word to predict");
  CHECK(masks.call({{"call", "read"}, {"text", "qux [MASK]"}})["unknown"] == Json({true, false}));
  CHECK(senses.error({{"call", "read"}, {"text", " "}}) ==
        "the sentence is empty; give at least one word");
}

TEST_CASE("static vectors in the page have neighbours and no answer") {
  Case kind = kinds[0];
  kind.task = TaskKind::static_embedding;
  kind.model = {.kind = ModelKind::static_embedding, .width = 8};
  const Run run = run_of(kind);
  Page page(run);
  CHECK(page.call({{"call", "read"}, {"text", money}})["refusal"] ==
        "a model of static embeddings predicts nothing; qkv embed shows its vectors");
  CHECK(page.call({{"call", "predict"}, {"text", money}, {"index", 1}})["predictions"].empty());
  CHECK(page.call({{"call", "attend"}, {"text", money}}) ==
        object({{"tokens", {"money", "bank", "grows"}}, {"layers", Json::array()}}));
  const Json nearest =
      page.call({{"call", "nearest"}, {"text", money}, {"index", 1}, {"count", 3}})["nearest"];
  REQUIRE(nearest.size() == 3);
  const auto vector_of = [&](const std::string& word) {
    return word_vectors(run, run.task->read(word), -1)[0].static_vector;
  };
  double before = 1;
  for (const Json& near : nearest) {
    const double found = cosine(vector_of("bank"), vector_of(near["word"]));
    CHECK(near["word"] != "bank");
    CHECK(near["cosine"].get<double>() == doctest::Approx(found));
    CHECK(found <= before);
    before = found;
  }
}

TEST_CASE("a language model in the page continues a text as its most probable tokens do") {
  const Run run = run_of(kinds[8]);
  Page page(run);
  const std::string found =
      page.call({{"call", "generate"}, {"text", "UP0"}, {"tokens", 15}})["text"];
  std::string text = "UP0";
  while (text.size() < 12) text += run.task->predict(*run.network, text).at(0).label;
  CHECK(found.size() == 15);
  CHECK(found.substr(0, 9) == text.substr(3));
  CHECK(page.call({{"call", "generate"},
                   {"text", "UP0"},
                   {"tokens", 15},
                   {"changes", {{"off", "0.0"}}}})["text"] != found);
}

TEST_CASE("the map of the page has the vectors of words and of whole texts in one plane") {
  const Run run = run_of(kinds[0]);
  Page page(run);
  const std::vector<std::string> texts = {money, "the river bank flows", "the bank"};
  Json points = Json::array();
  std::vector<WordVector> words;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Index index = i == 0 ? -1 : 1;
    points.push_back({{"text", texts[i]}, {"index", index}});
    words.push_back(word_vector(run, run.task->read(texts[i]), index));
  }
  const Json found = page.call({{"call", "map"}, {"points", points}});
  for (const auto& [name, vector] : {std::pair{"before", &WordVector::static_vector},
                                     std::pair{"after", &WordVector::contextual}}) {
    const Tensor rows = stacked(words, vector);
    const auto components = principal_components(rows, 2);
    CHECK(found[name]["share"] == Json(components.variance_fraction));
    CHECK(found[name]["points"] == Json(in_plane(components, rows)));
  }
}

TEST_CASE("the page may replace a model by another of the same name") {
  const Run first = run_of(kinds[0]), second = run_of(kinds[1]);
  Engine engine;
  for (const Run* run : {&first, &second}) {
    load(engine, *run);
    const Json request = {{"call", "predict"}, {"model", "m"}, {"text", money}};
    CHECK(Json::parse(engine.call(request.dump())) == predictions(*run, money));
  }
}

TEST_CASE("a call of the page that names what a model does not have is an error that says so") {
  Page page(run_of(kinds[0])), text_class(run_of(kinds[3]));
  const auto error = [&](const char* call, Json request) {
    request["call"] = call;
    if (!request.contains("text")) request["text"] = money;
    return page.error(request);
  };
  CHECK(error("explain", Json::object()) == "the request has no \"index\"");
  CHECK(error("explain", {{"index", 3}}) == "\"index\" of the request is 3; it counts from 0 to 2");
  for (const Json& index : {Json(-1), Json(1.5), Json("1"), Json(std::uint64_t{1} << 63)})
    for (const char* call : {"predict", "explain", "embed", "nearest", "ablate"})
      CHECK(error(call, {{"index", index}, {"count", 1}}).starts_with("\"index\" of the request "));
  CHECK(error("nearest", {{"index", 1}}) == "the request has no \"count\"");
  CHECK(error("explain", {{"index", 1}, {"output", true}}) ==
        "\"output\" of the request: the model writes no text");
  CHECK(error("read", {{"text", nullptr}}) == "the request has no \"text\"");
  CHECK(error("predict", {{"text", ""}}) == "the sentence is empty; give at least one word");
  CHECK(error("predict", {{"changes", {{"uniform", 1}}}}) ==
        "\"uniform\" of the request must be true or false");
  CHECK(error("predict", {{"changes", true}}) == "\"changes\" of the request must be an object");
  CHECK(error("generate", {{"tokens", 3}}) ==
        "the model was not trained to continue a text; generate needs task.kind = "
        "\"language-model\"");
  CHECK(error("map", {{"points", Json::array()}}) == "\"points\" of the request is empty");
  CHECK(error("map", {{"points", {1}}}) == "\"points\" of the request must be a list of objects");
  CHECK(text_class.error({{"call", "ablate"}, {"text", "a bad plot"}}) ==
        "the model has no attention heads or feed-forward blocks to ablate; take a transformer");
}

TEST_CASE("a model that the page cannot load is an error, and the one before stays") {
  const Run run = run_of(kinds[0]);
  Engine engine;
  load(engine, run);
  const auto error = [&](const std::string& bytes, const char* field, const Json& value) {
    engine.files()["parameters"] = bytes;
    Json request = load_request(run);
    request[field] = value;
    return Json::parse(engine.call(request.dump())).value("error", "no error");
  };
  const std::size_t size = bytes_of(*run.network).size();
  CHECK(error("abc", "model", "m") ==
        fmt::format("the file \"parameters\" has 3 bytes; the {} parameters of the model have {}",
                    size / 4, size));
  CHECK(
      error("", "config", "[model]\nwidht = 3").starts_with("page:2: unknown key \"model.widht\""));
  CHECK(error("", "vocabulary", {{"tokens", 3}}) ==
        "\"tokens\" of \"vocabulary\" must be a list of texts");
  CHECK(error("", "vocabulary", Json::object()) == "the checkpoint has no /vocabulary/tokens");
  CHECK(error("", "model", 1) == "\"model\" of the request must be a text");
  engine.files().clear();
  CHECK(Json::parse(engine.call(load_request(run).dump()))["error"] ==
        "there is no file \"parameters\"; put it before the call");
  const Json request = {{"call", "predict"}, {"model", "m"}, {"text", money}};
  CHECK(Json::parse(engine.call(request.dump())) == predictions(run, money));
}
