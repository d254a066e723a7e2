#include "inspect/report/encode.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "inspect/report/page.h"

using namespace qkv::report;

TEST_CASE("weights are base64 of their square roots, a byte each") {
  CHECK(encoded_weights(std::vector<double>{0, 1, 0.5, 2, -1}) == "AP+0/wA=");  // 00 ff b4 ff 00
}

TEST_CASE("signed values are bytes relative to the largest") {
  CHECK(encoded_signed(std::vector<double>{2, -2, 0}, 2) == "f4EA");  // 7f 81 00
  CHECK(encoded_signed(std::vector<double>{0, 0}, 0) == "AAA=");
}

TEST_CASE("parameters are base64 of little-endian float32") {
  CHECK(encoded_floats(std::vector<float>{1, -2}) == "AACAPwAAAMA=");  // 0000803f 000000c0
}

TEST_CASE("bytes are base64 of gzip, which repetitions make short") {
  const std::string text = encoded_gzip(std::string(100'000, 'a'));
  CHECK(text.starts_with("H4sI"));  // 1f 8b 08
  CHECK(text.size() < 300);
  CHECK(encoded_size(std::string(100'000, 'a')) == text.size());
  CHECK(encoded_gzip("").starts_with("H4sI"));
}

TEST_CASE("text for HTML has no markup") {
  CHECK(html_text(R"(<b a="1">&)") == "&lt;b a=&quot;1&quot;&gt;&amp;");
}

TEST_CASE("a page holds its title, data, styles and scripts, and no open place is left") {
  const std::string text = page("<bank>", "data");
  CHECK(text.starts_with("<!doctype html>"));
  CHECK(text.find("<title>&lt;bank&gt;") != text.npos);
  CHECK(text.find("id=\"data\">" + encoded_gzip("data") + "<") != text.npos);
  CHECK(text.find("class Module") != text.npos);
  CHECK(text.find("{{data}}") == text.npos);
  CHECK(text.find("gzip}}") == text.npos);
  CHECK(text.size() == characters_around_data() + encoded_size("data") - encoded_size("") +
                           2 * std::string_view("&lt;bank&gt;").size());
}
