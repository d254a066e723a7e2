#include "train/fit/search_plan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/random.h"
#include "tests/support/errors.h"

using namespace qkv;

namespace {

std::vector<CandidateTime> four(double seconds) {
  return {{"d", 0, seconds}, {"a", 0, 8 * seconds}, {"c", 0, 2 * seconds}, {"b", 0, 4 * seconds}};
}

std::vector<Variant> variants(const std::vector<std::string>& names) {
  std::vector<Variant> result;
  for (const std::string& name : names) result.push_back({name, {}});
  return result;
}

}  // namespace

TEST_CASE("halving leaves the worse half out after each fold, down to two candidates") {
  const SearchPlan plan{{"a", "b", "c", "d", "e", "f", "g"}, 5, 1, true};
  CHECK(rounds_of(plan) == std::vector<SearchRound>{{1, 1, 7}, {2, 2, 4}, {3, 5, 2}});
  const SearchPlan all{plan.candidates, 5, 1, false};
  CHECK(rounds_of(all) == std::vector<SearchRound>{{1, 5, 7}});
  const SearchPlan one{{"a"}, 3, 1, true};
  CHECK(rounds_of(one) == std::vector<SearchRound>{{1, 3, 1}});
}

TEST_CASE("the seconds of a search are those of its trainings beside each other and of the last") {
  const auto times = four(1);
  CHECK(search_seconds({{"a", "b", "c", "d"}, 5, 1, false}, times, 1) == 5 * 15 + 15);
  CHECK(search_seconds({{"a", "b", "c", "d"}, 5, 1, false}, times, 2) == 37.5 + 8);
  CHECK(search_seconds({{"a", "b", "c", "d"}, 3, 1, true}, times, 1) == 15 + 2 * 12 + 12);
  CHECK(search_seconds({{"d"}, 2, 1, true, 0.5}, times, 8) == 0.5 + 0.5);  // a fold each, then all
  // Each training reads and is evaluated after reading again, and so are the folds in the end.
  CHECK(search_seconds({{"a"}, 2, 1, true}, std::vector{CandidateTime{"a", 0.25, 1}}, 1) ==
        3 * 1.5 + 3 * 0.25);
}

TEST_CASE("a plan has as many folds and candidates as there is time for") {
  const auto plan = [](double seconds, Index most = 10) {
    return search_plan(four(1), 1, seconds, most, 1);
  };
  const std::vector<std::string> all = {"a", "b", "c", "d"};
  CHECK(plan(200) == SearchPlan{all, 10, 1, false});
  CHECK(plan(100, 4) == SearchPlan{all, 4, 1, false});
  CHECK(plan(100) == SearchPlan{all, 5, 1, false});
  CHECK(plan(75) == SearchPlan{{"b", "c", "d"}, 5, 1, false});
  CHECK(plan(39) == SearchPlan{{"c", "d"}, 10, 1, false});
  CHECK(plan(20) == SearchPlan{{"c", "d"}, 5, 1, false});
  CHECK(plan(17) == SearchPlan{{"c", "d"}, 3, 1, true});
  CHECK(plan(3.5) == SearchPlan{{"d"}, 2, 1, true});
  CHECK(plan(1.5) == SearchPlan{{"d"}, 2, 1, true, 0.5});
}

TEST_CASE("time that is left after all folds repeats the cross-validation") {
  const auto repeats = [](double seconds, Index folds = 10) {
    return search_plan(four(1), 1, seconds, folds, 1).repeats;
  };
  CHECK(repeats(10 * 15 + 15) == 1);
  CHECK(repeats(20 * 15 + 15) == 2);
  CHECK(repeats(30 * 15 + 15) == 3);
  CHECK(repeats(1000) == 3);
  CHECK(repeats(12 * 15 + 15, 4) == 3);
  CHECK(search_plan(four(1), 1, 20 * 15 + 2 * 15, 10, 3).seeds == 3);  // seeds first
}

TEST_CASE("time that is left trains the winner with further seeds") {
  const auto seeds = [](double seconds) { return search_plan(four(1), 1, seconds, 10, 3).seeds; };
  CHECK(seeds(10 * 15 + 15) == 1);
  CHECK(seeds(10 * 15 + 2 * 15) == 2);
  CHECK(seeds(10 * 15 + 3 * 15) == 3);
  CHECK(seeds(1000) == 3);
  CHECK(search_seconds({{"a", "b", "c", "d"}, 10, 1, false, 1, 3}, four(1), 1) == 195);
}

TEST_CASE("drawn plans end within their time unless a thousandth of the steps takes longer") {
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Random random(1, Purpose::testing, i);
    const auto up_to = [&](std::uint64_t n, int most) {
      return 1 + static_cast<int>(random.uniform(n) * most);
    };
    std::vector<CandidateTime> times;
    for (int n = 0; n < up_to(0, 8); ++n) {
      const auto draw = static_cast<std::uint64_t>(3 + 2 * n);
      times.push_back(
          {std::to_string(n), random.uniform(draw), std::exp(8 * random.uniform(draw + 1) - 4)});
    }
    const int threads = up_to(1, 16);
    const double seconds = std::exp(8 * random.uniform(2) - 2);
    const SearchPlan plan = search_plan(times, threads, seconds, 10, 1 + static_cast<Index>(i % 3));
    CAPTURE(i);
    CHECK(plan.folds >= 2);
    CHECK(!plan.candidates.empty());
    if (plan.fraction > 1e-3) CHECK(search_seconds(plan, times, threads) <= seconds * (1 + 1e-9));
  }
}

TEST_CASE("a search is read as it was written, and nothing else is") {
  const StoredSearch search{"qkv fit a.tsv", "accuracy", {{"a", "b"}, 3, 2, true, 0.25, 2}};
  CHECK(parse_search(to_json(search), variants({"b", "c", "a"})) == search);
  const auto refused = [&](const char* key, nlohmann::json value) {
    auto changed = nlohmann::json::parse(to_json(search));
    changed[key] = std::move(value);
    return error_of<FileError>([&] { parse_search(changed.dump(), variants({"a", "b"})); });
  };
  CHECK(refused("candidates", {"a", "x"}) == "it has other candidates");
  CHECK(refused("candidates", {"a", "a"}) == "it has other candidates");
  CHECK(refused("candidates", nlohmann::json::array()) == "it has other candidates");
  CHECK(refused("candidates", 7) != "no error");
  CHECK(refused("folds", 1) == "it has 1 folds instead of 2 to 10");
  CHECK(refused("folds", 1'000'000'000'000) == "it has 1000000000000 folds instead of 2 to 10");
  CHECK(refused("repeats", 4) == "it has 4 repeats instead of 1 to 3");
  CHECK(refused("fraction", 0) == "it has a fraction of 0 instead of one in (0, 1]");
  CHECK(refused("seeds", 0) == "it has 0 seeds instead of 1 to 3");
  CHECK(refused("seeds", 4) == "it has 4 seeds instead of 1 to 3");
  CHECK(refused("halves", nullptr) != "no error");
  CHECK(refused("metric", 1) != "no error");
  for (const char* text : {"", "{", "[]", "{}", "{\"command\": 1}"})
    CHECK(error_of<FileError>([&] { parse_search(text, variants({"a"})); }) != "no error");
}

TEST_CASE("the expected score has the interval of one more fold") {
  // R: t.test's quantile qt(.975, 4) = 2.776445; sd(c(.8, .9, .7, .85, .75)) = 0.07905694.
  const auto [mean, low, high] = expected_score(std::vector{.8, .9, .7, .85, .75}, 5);
  CHECK(mean == doctest::Approx(.8));
  CHECK(high - mean == doctest::Approx(2.776 * 0.07905694 * std::sqrt(1.2)));
  CHECK(mean - low == doctest::Approx(high - mean));
  const auto twice = expected_score(std::vector{.8, .9, .7, .85, .75, .8, .9, .7, .85, .75}, 5);
  CHECK(twice.mean == doctest::Approx(.8));
  CHECK(twice.high - .8 == doctest::Approx(std::sqrt(8. / 9) * (high - mean)));
  CHECK(error_of<ValueError>([] { expected_score(std::vector{.8}, 1); }) ==
        "expected_score takes the scores of 2 to 10 folds, got 1");
}

TEST_CASE("the interval of a fraction is no smaller than chance and stays in [0, 1]") {
  const std::vector<double> equal = {1, 1}, spread = {.8, .9, .7, .85, .75};
  const auto few = expected_fraction(equal, 2, 2);
  CHECK(few.mean == 1);
  CHECK(few.low == 0);
  CHECK(few.high == 1);
  const auto many = expected_fraction(equal, 2, 20000);
  CHECK(many.low == doctest::Approx(1 - 12.706 * std::sqrt(1.5 * 20001. / 20002 / 20002 / 10000)));
  CHECK(expected_fraction(spread, 5, 1'000'000).low == expected_score(spread, 5).low);
}
