#include "train/metrics/metrics.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

TEST_CASE("an event has a step, a split and its line") {
  const std::string line = R"({"step":5,"split":"valid","loss":0.5,"accuracy":1,"seconds":2.5})";
  const Metrics metrics = parse_metrics(line + "\n" + R"({"split":"train","step":6,"loss":null})");
  REQUIRE(metrics.events.size() == 2);
  const MetricsEvent& event = metrics.events[0];
  CHECK(event.step == 5);
  CHECK(event.split == "valid");
  CHECK(event.loss == 0.5);
  CHECK(event.seconds == 2.5);
  CHECK(event.json == line);
  CHECK(metrics.events[1].step == 6);
  CHECK(!metrics.events[1].loss);
  CHECK(metrics.malformed.empty());
}

TEST_CASE("lines of other types are counted as malformed, each by its number") {
  for (const char* line :
       {"", "x", "[]", "7", "null", "{}", R"({"step":1})", R"({"split":"valid"})",
        R"({"step":"x","split":"valid"})", R"({"step":-1,"split":"valid"})",
        R"({"step":1.5,"split":"valid"})", R"({"step":18446744073709551615,"split":"valid"})",
        R"({"step":1,"split":2})", R"({"step":1,"split":"valid","loss":"x"})",
        R"({"step":1,"split":"valid","seconds":[]})", "{\"step\":1,\"split\":\"\xff\"}"}) {
    CAPTURE(line);
    const std::string good = R"({"step":1,"split":"valid"})";
    const Metrics metrics = parse_metrics(good + "\n" + line + "\n" + good + "\n");
    CHECK(metrics.events.size() == 2);
    CHECK(metrics.malformed == std::vector<std::size_t>{2});
  }
}

TEST_CASE("a last line that a killed process did not finish does not count") {
  const std::string line = R"({"step":5,"split":"valid","loss":0.5})";
  for (std::size_t length = 0; length < line.size(); ++length) {
    CAPTURE(length);
    const Metrics metrics = parse_metrics(line + "\n" + line.substr(0, length));
    CHECK(metrics.events.size() == 1);
    CHECK(metrics.malformed.empty());
  }
}

TEST_CASE("a missing file has no events, and what is no file is an error") {
  const TempDir dir;
  CHECK(read_metrics(dir.path() / "none").events.empty());
  CHECK(error_of<UserError>([&] { read_metrics(dir.path()); }) ==
        dir.path().string() + ": is not a file");
}
