#include "inspect/probe_check.h"

#include <doctest/doctest.h>

#include "inspect/intervention.h"

namespace qkv::probe_check_test {

namespace {

Run small_run(const ModelOptions& model = {.width = 8, .layers = 1, .heads = 2}) {
  Config config;
  config.name = "small";
  config.task.train = config.task.valid = config.task.test =
      QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";
  config.model = model;
  return start_run(config);
}

ProbeResult checked(Run& run, const Probe& probe) {
  run.config.probes = {probe};
  return check_probes(run).at(0);
}

Probe about_bank(const std::string& expect) {
  return {.name = "p",
          .sentences = {"money bank grows", "river bank flows"},
          .word = "bank",
          .expect = expect,
          .variants = {},
          .broken_by = {},
          .swap = {}};
}

Tensor weight(const Network& network, const std::string& path) {
  for (const auto& [name, parameter] : parameters(const_cast<Network&>(network)))
    if (name == path) return parameter->value();
  throw ValueError("no " + path);
}

const std::string queries = "encoder.layers.0.attention.w_q.weight";

}  // namespace

TEST_CASE("a word's static vector is one, its contextual vector is not") {
  Run run = small_run();
  CHECK(checked(run, about_bank("static_cosine = 1")).passes());
  CHECK(checked(run, about_bank("contextual_cosine < 0.9999")).passes());
  CHECK_FALSE(checked(run, about_bank("contextual_cosine = 1")).passes());
}

TEST_CASE("labels are compared with what the model says") {
  Run run = small_run();
  const std::string said = run.task->predict(*run.network, "money bank grows").at(0).label;
  Probe probe = about_bank("label = \"" + said + "\"");
  probe.sentences = {"money bank grows"};
  CHECK(checked(run, probe).passes());
  probe.expect = "label = \"nothing\"";
  CHECK_FALSE(checked(run, probe).passes());
  CHECK(checked(run, probe).trained.measured == said);
}

TEST_CASE("a probe fails when its claim survives an intervention that should break it") {
  Run run = small_run();
  Probe probe = about_bank("static_cosine = 1");
  probe.broken_by = {"uniform-attention"};
  const ProbeResult result = checked(run, probe);
  CHECK(result.trained.holds);
  CHECK(result.broken.at(0).holds);
  CHECK_FALSE(result.passes());
}

TEST_CASE("no word is attended to most when all weights are equal") {
  Run run = small_run({.width = 8, .layers = 1, .heads = 2, .attention = AttentionKind::uniform});
  for (const char* word : {"money", "bank", "grows"}) {
    Probe probe = about_bank(std::string("attends_to = \"") + word + "\"");
    probe.sentences = {"money bank grows"};
    CHECK_FALSE(checked(run, probe).passes());
  }
}

TEST_CASE("some head attends most to some word") {
  Run run = small_run();
  int found = 0;
  for (const char* word : {"money", "bank", "grows"}) {
    Probe probe = about_bank(std::string("attends_to = \"") + word + "\"");
    probe.sentences = {"money bank grows"};
    found += checked(run, probe).passes();
  }
  CHECK(found >= 1);
}

TEST_CASE("a probe that cannot be asked is an error that names it") {
  Run run = small_run({.kind = ModelKind::static_embedding, .width = 8});
  const auto error = [&](const Probe& probe) -> std::string {
    try {
      checked(run, probe);
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(error(about_bank("attends_to = \"bank\"")) == "probe \"p\": the model has no attention");
  Probe elsewhere = about_bank("contextual_cosine < 1");
  elsewhere.word = "zebra";
  CHECK(error(elsewhere) ==
        "probe \"p\": a cosine needs the word twice, its sentences have it nowhere");
  CHECK(error(about_bank("label = \"money\"")) ==
        "probe \"p\": expects 1 answers, the model gives 2 to these sentences");
}

TEST_CASE("an intervention keeps the weights that it does not touch") {
  const Run run = small_run();
  for (const std::string_view name : intervention_names) {
    const LoadedModel changed = intervened(run, intervention_of(name).value());
    CHECK(weight(*changed.network, "embedding.weight").values() ==
          weight(*run.network, "embedding.weight").values());
  }
}

TEST_CASE("shuffled queries are the same values in another order, the same each time") {
  const Run run = small_run();
  auto before = weight(*run.network, queries).values();
  auto after = weight(*intervened(run, Intervention::shuffled_queries).network, queries).values();
  CHECK(after ==
        weight(*intervened(run, Intervention::shuffled_queries).network, queries).values());
  CHECK(before != after);
  std::ranges::sort(before);
  std::ranges::sort(after);
  CHECK(before == after);
}

TEST_CASE("a model without queries has none to shuffle") {
  const Run run =
      small_run({.width = 8, .layers = 1, .heads = 1, .attention = AttentionKind::parameter_free});
  CHECK_THROWS_WITH_AS(intervened(run, Intervention::shuffled_queries),
                       "shuffled-queries: the model has no W_q", UserError);
}

TEST_CASE("swapped words change places as whole words") {
  CHECK(swapped("the man beats the boy, manly", "man", "boy") == "the boy beats the man, manly");
  CHECK(swapped("केक और नमक", "केक", "नमक") == "नमक और केक");
  CHECK(swapped("", "a", "b").empty());
}

TEST_CASE("probes about other data than the model's are left out, each with the reason") {
  Run run = small_run();
  const auto about = [](const std::string& expect, const std::string& sentence) {
    Probe probe = about_bank(expect);
    probe.sentences = {sentence, "river bank"};
    return probe;
  };
  const Probe kept = about("contextual_cosine < 1", "money bank");
  run.config.probes = {about("label = \"nothing\"", "money bank"), kept,
                       about("contextual_cosine < 1", "money bank zzz"),
                       about("label = \"river\"", "money")};
  const std::string begin =
      "the probe \"p\" of the config is left out, as it is not about these data: ";
  const auto lines = leave_out_probes(run);
  CHECK(run.config.probes == std::vector{kept});
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == begin + "\"nothing\" is no label of the model's");
  CHECK(lines[1] == begin + "\"zzz\" is not in the vocabulary");
  CHECK(lines[2].starts_with(begin + "\"money\" has none of the words"));
}

}  // namespace qkv::probe_check_test
