#include "inspect/report/encode.h"

#include <doctest/doctest.h>

#include <vector>

#include "inspect/report/page.h"

using namespace qkv::report;

TEST_CASE("weights are base64 of little-endian integers of 16 bits, or of square roots of 8") {
  const std::vector<double> weights = {0, 1, 0.5, 2, -1};
  CHECK(encoded_weights(weights, 8) == "AP+0/wA=");           // 00 ff b4 ff 00
  CHECK(encoded_weights(weights, 16) == "AAD//wCA//8AAA==");  // 0000 ffff 8000 ffff 0000
}

TEST_CASE("signed values are bytes relative to the largest") {
  CHECK(encoded_signed(std::vector<double>{2, -2, 0}, 2) == "f4EA");  // 7f 81 00
  CHECK(encoded_signed(std::vector<double>{0, 0}, 0) == "AAA=");
}

TEST_CASE("parameters are base64 of little-endian float32") {
  CHECK(encoded_floats(std::vector<float>{1, -2}) == "AACAPwAAAMA=");  // 0000803f 000000c0
}

TEST_CASE("nothing in the data can end the element that holds it or begin markup") {
  CHECK(json_for_script(R"({"text":"</script><!--"})") == R"({"text":"\u003c/script>\u003c!--"})");
  CHECK(html_text(R"(<b a="1">&)") == "&lt;b a=&quot;1&quot;&gt;&amp;");
}

TEST_CASE("a page holds its title, data, styles and scripts, and no open place is left") {
  const std::string text = page("<bank>", R"({"name":"<bank> {{css}}"})");
  CHECK(text.starts_with("<!doctype html>"));
  CHECK(text.find("<title>&lt;bank&gt;") != text.npos);
  CHECK(text.find(R"({"name":"\u003cbank> {{css}}"})") != text.npos);
  CHECK(text.find("d3js.org") != text.npos);
  CHECK(text.find("{{data}}") == text.npos);
}
