#include "train/config/sweep_points.h"

#include <cmath>
#include <fstream>
#include <set>

#include "tests/train/config/parse.h"
#include "train/config/sweep_file.h"

using namespace qkv;
using namespace qkv::config_tests;

namespace {

std::vector<TomlSweep> sweeps(const std::string& toml) {
  return parse_toml(toml, "s.toml").sweeps;
}

std::vector<std::string> names(const std::vector<TomlTable>& points) {
  std::vector<std::string> all;
  for (const TomlTable& point : points)
    all.push_back(std::get<std::string>(point.entries.front().value));
  return all;
}

SweepFile read_swept(const std::string& more, Index trials) {
  const TempDir dir;
  std::ofstream(dir.path() / "c.toml") << smallest + more;
  return read_sweep(dir.path() / "c.toml", none, trials);
}

std::string error_of_sweep(const std::string& more, Index trials = 0) {
  std::string error = message_of([&] { read_swept(more, trials); });
  return error.substr(error.rfind("c.toml"));
}

}  // namespace

TEST_CASE("a grid has every combination of the values of each sweep") {
  CHECK(names(grid_of(sweeps(R"(
[[sweep]]
model.width = [16, 32]
optimizer.kind = ["adam", "sgd"]
[[sweep]]
optimizer.lr = [0.5, 1e-3]
model.bias = false
)"),
                      "")) == std::vector<std::string>{"width 16, kind adam", "width 16, kind sgd",
                                                       "width 32, kind adam", "width 32, kind sgd",
                                                       "lr 0.5, bias false",
                                                       "lr 0.001, bias false"});
}

TEST_CASE("points are named by their texts") {
  const auto drawn =
      sweeps("[[sweep]]\ntrain.freeze = [[], ['embedding'], ['embedding', 'layers.0']]\n");
  CHECK(names(grid_of(drawn, "")) ==
        std::vector<std::string>{"freeze none", "freeze embedding", "freeze embedding + layers.0"});
}

TEST_CASE("random points are distinct points of the lists and ranges, the first ones of more") {
  const auto drawn = sweeps(R"(
[[sweep]]
model.width = { range = [3, 6] }
optimizer.lr = { log_range = [1e-4, 1e-2] }
train.ema = { range = [0, 0.5] }
model.heads = [1, 2]
)");
  const auto points = random_points(drawn, 400, 1);
  REQUIRE(points.size() == 400);
  const auto all = names(points);
  CHECK(std::set(all.begin(), all.end()).size() == 400);
  std::set<std::int64_t> widths, heads;
  int low_rates = 0;
  for (const TomlTable& point : points) {
    widths.insert(std::get<std::int64_t>(point.entries[1].value));
    const double rate = std::get<double>(point.entries[2].value);
    CHECK((rate >= 1e-4 && rate <= 1e-2));
    low_rates += rate < 1e-3;
    const double ema = std::get<double>(point.entries[3].value);
    CHECK((ema >= 0 && ema <= 0.5));
    CHECK(ema == std::stod(fmt::format("{:.3g}", ema)));
    heads.insert(std::get<std::int64_t>(point.entries[4].value));
  }
  CHECK(widths == std::set<std::int64_t>{3, 4, 5, 6});
  CHECK(heads == std::set<std::int64_t>{1, 2});
  CHECK(std::abs(low_rates - 200) < 40);  // half of the logarithms
  const auto first = names(random_points(drawn, 7, 1));
  CHECK(std::equal(first.begin(), first.end(), all.begin()));
  CHECK(names(random_points(drawn, 7, 2)) != first);
}

TEST_CASE("lists have no more random points than a grid") {
  const auto two = sweeps("[[sweep]]\nmodel.heads = [1, 2]\n[[sweep]]\nmodel.width = 8\n");
  CHECK(random_points(two, 10, 1).size() == 3);
}

TEST_CASE("the points of a sweep are variants, and each variant has every point") {
  const std::string sweep = "[[sweep]]\nmodel.heads = [1, 2]\n";
  const SweepFile alone = read_swept(sweep, 0);
  CHECK(alone.crossed.empty());
  CHECK(alone.sweeps.size() == 1);
  REQUIRE(alone.variants.size() == 2);
  CHECK(alone.variants[1].name == "heads 2");
  CHECK(alone.variants[1].config.model.heads == 2);
  CHECK(alone.variants[1].config.name == "bank - heads 2");
  const SweepFile both = read_swept("[[variant]]\nname = 'wide'\nmodel.width = 64\n" + sweep, 0);
  REQUIRE(both.variants.size() == 2);
  CHECK(both.variants[1].name == "wide, heads 2");
  CHECK(both.crossed == std::vector<std::string>{"wide"});
  CHECK(both.variants[1].config.model.width == 64);
}

TEST_CASE("a config is read without its sweep, which a stored one has not") {
  CHECK(read(smallest + "[[sweep]]\nmodel.heads = [1, 2]\n").variants.empty());
  CHECK(error_of("[[sweep]]\nmodel.heads = [1, 2]\n") ==
        "c.toml:3: a single configuration has no sweep");
}

TEST_CASE("errors in a sweep are named with their lines") {
  const std::string ends =
      "takes two numbers, the lower one first, as in { range = [0, 0.5] } or "
      "{ log_range = [1e-4, 1e-2] }";
  const auto error = [](const std::string& axis, Index trials = 0) {
    return error_of_sweep("[[sweep]]\n" + axis, trials);
  };
  CHECK(error("optimizer.lr = { range = [1, 0] }") ==
        "c.toml:4: the range of optimizer.lr " + ends);
  CHECK(error("optimizer.lr = { log_range = [0, 1] }") ==
        "c.toml:4: the range of optimizer.lr " + ends);
  CHECK(error("optimizer.lr = { range = [0, inf] }") ==
        "c.toml:4: the range of optimizer.lr " + ends);
  CHECK(error("optimizer.lr = { range = [0, 1, 2] }") ==
        "c.toml:4: the range of optimizer.lr " + ends);
  CHECK(error("optimizer.lr = { range = ['a', 'b'] }") ==
        "c.toml:4: the range of optimizer.lr " + ends);
  CHECK(error("optimizer.lr = { range = [0, 1] }") ==
        "c.toml:4: the range of optimizer.lr has no grid; give a list of values, or draw points "
        "with qkv sweep --trials N");
  CHECK(error("model.heads = []") == "c.toml:4: model.heads sweeps over no values");
  CHECK(error("") == "c.toml:3: a sweep needs an option, as in model.width = [16, 32]");
  CHECK(error("model.hads = [1, 2]") ==
        "c.toml:4: unknown key \"model.hads\" (did you mean \"model.heads\"?)");
  CHECK(error("model.heads = [1, 'many']").starts_with("c.toml:4: model.heads must be"));
  CHECK(error("model.heads = [1, 2000]", 5).starts_with("c.toml:4: model.heads must be"));
  CHECK(error("name = 'a'") ==
        "c.toml:4: a sweep has no name; its points are named by their values");
  CHECK(error("model.heads = [1, 1]") ==
        "c.toml:3: a variant with the name \"heads 1\" came before; each needs its own");
  CHECK(error_of_sweep("sweep = 3\n")
            .starts_with("c.toml:3: a sweep begins with the line [[sweep]]"));
  CHECK(error_of_sweep("").starts_with("c.toml: has no [[sweep]]"));
}
