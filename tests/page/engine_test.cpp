#include "page/engine.h"

#include <doctest/doctest.h>

using namespace qkv;
using page::Engine;

namespace {

std::string error_of(Engine& engine, std::string_view request) {
  return Json::parse(engine.call(request)).value("error", "no error");
}

}  // namespace

TEST_CASE("a request to the page's engine that it cannot take is an error that says why") {
  Engine engine;
  for (const char* text : {"", "[1]", "{\"call\"", "{\"call\": \"\xff\"}"})
    CHECK(error_of(engine, text) == "the request is not a JSON object");
  CHECK(error_of(engine, std::string(100000, '[')) == "the request is nested deeper than 8 levels");
  CHECK(error_of(engine, "{}") == "the request has no \"call\"");
  CHECK(error_of(engine, R"({"call": 3})") == "\"call\" of the request must be a text");
  CHECK(error_of(engine, R"({"call": "fly"})") ==
        "\"call\" of the request is \"fly\", which the engine does not have");
  CHECK(error_of(engine, R"({"call": "read", "model": "m"})") ==
        "there is no model \"m\"; load it before the call");
}
