#include "train/config/probe.h"

#include <doctest/doctest.h>

#include "tests/support/temp_dir.h"
#include "train/config/config.h"

namespace qkv::probe_test {

namespace {

const std::string smallest = "name = \"bank\"\ntask.train = \"train.tsv\"\n";
const std::string valid_probe = R"(
[[probe]]
name = "context decides"
sentences = ["money bank grows", "river bank flows"]
word = "bank"
expect = 'contextual_cosine < 0.5'
variants = ["deep"]
broken_by = ["swapped-words", "uniform-attention"]
swap = ["money", "river"]
)";

std::string error_of(const std::string& probe) {
  try {
    parse_config(smallest + "[[probe]]\n" + probe, "c.toml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string expectation_error(const std::string& expect) {
  return error_of("name = \"p\"\nsentences = [\"a\"]\nexpect = '" + expect + "'\n");
}

ConfigFile read(const std::string& text) {
  const TempDir dir;
  return read_config(dir.write("c.toml", text), {});
}

}  // namespace

TEST_CASE("a probe's keys are read, and printed so that they can be read again") {
  const Config config = parse_config(smallest + valid_probe, "c.toml");
  REQUIRE(config.probes.size() == 1);
  const Probe& probe = config.probes[0];
  CHECK(probe.sentences == std::vector<std::string>{"money bank grows", "river bank flows"});
  CHECK(probe.broken_by == std::vector<std::string>{"swapped-words", "uniform-attention"});
  CHECK(parse_config(to_toml(config), "again.toml") == config);
}

TEST_CASE("an expectation is a measure, a relation and a value") {
  const Expectation cosine = parse_expectation("contextual_cosine < 0.5");
  CHECK(cosine.measure == Measure::contextual_cosine);
  CHECK(cosine.relation == Relation::below);
  CHECK(cosine.number == 0.5);
  CHECK(parse_expectation("static_cosine=1").number == 1);
  CHECK(parse_expectation("label = [\"money\", \"river\"]").texts ==
        std::vector<std::string>{"money", "river"});
  CHECK(parse_expectation("attends_to = \"animal\"").texts == std::vector<std::string>{"animal"});
}

TEST_CASE("a malformed probe is an error that names its line and a fix") {
  CHECK(error_of("name = \"p\"\n").starts_with("c.toml:3: a probe needs sentences, as in "));
  CHECK(error_of("sentences = [\"a\"]\n").starts_with("c.toml:3: a probe needs a name, as in "));
  CHECK(error_of("sentense = [\"a\"]\n")
            .starts_with("c.toml:4: unknown key \"sentense\" of a probe"));
  CHECK(error_of("sentences = [1]\n") ==
        "c.toml:4: sentences must be an array of texts, as in [\"a\", \"b\"], got an array");
  CHECK(error_of("name = \"p\"\nsentences = [\"a\"]\nbroken_by = [\"magic\"]\n") ==
        "c.toml:3: a probe broken_by knows without-positions, uniform-attention, shuffled-queries, "
        "swapped-words, got \"magic\"");
  CHECK(error_of("name = \"p\"\nsentences = [\"a\"]\nbroken_by = [\"swapped-words\"]\n")
            .starts_with("c.toml:3: a probe needs two words for swapped-words"));
}

TEST_CASE("an expectation that makes no sense is an error that shows what would") {
  for (const char* expect : {"", "cosine < 1", "label < \"a\"", "label = 3", "label = []",
                             "contextual_cosine = \"x\"", "static_cosine 1", "label = [1]"}) {
    CAPTURE(expect);
    CHECK(expectation_error(expect).starts_with("c.toml:3: expect must be like "));
  }
}

TEST_CASE("a variant has the probes that are about it or about all, and so has a base like it") {
  const std::string all =
      "\n[[probe]]\nname = \"all\"\nsentences = [\"a\"]\nexpect = 'label = \"b\"'\n";
  const ConfigFile file = read(smallest + valid_probe + all +
                               "[[variant]]\nname = \"deep\"\nmodel.layers = 2\n"
                               "[[variant]]\nname = \"as it is\"\n");
  CHECK(file.variants[0].config.probes.size() == 2);
  CHECK(file.variants[1].config.probes.size() == 1);
  CHECK(file.base.probes.size() == 1);
  const ConfigFile deep = read(smallest + valid_probe + all + "[[variant]]\nname = \"deep\"\n");
  CHECK(deep.base.probes.size() == 2);
}

TEST_CASE("the stored config of a variant is a config of its own, with the probes about it") {
  const ConfigFile file =
      read(smallest + valid_probe + "[[variant]]\nname = \"deep\"\nmodel.layers = 2\n");
  const Config& deep = file.variants[0].config;
  CHECK(deep.probes.size() == 1);
  CHECK(read(to_toml(deep)).base == deep);
}

TEST_CASE("a probe about a variant that the file does not have is an error") {
  CHECK_THROWS_WITH_AS(
      read(smallest + valid_probe),
      doctest::Contains("probe \"context decides\" names an unknown variant \"deep\""),
      ConfigError);
}

}  // namespace qkv::probe_test
