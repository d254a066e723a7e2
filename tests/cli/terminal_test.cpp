#include "cli/terminal.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <clocale>
#include <sstream>

using namespace qkv;

namespace {

int widest_line(const std::string& text) {
  std::istringstream lines(text);
  int widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, display_width(line));
  return widest;
}

}  // namespace

TEST_CASE("a text that is too long loses its middle") {
  std::setlocale(LC_CTYPE, "C.UTF-8");  // as main() does
  CHECK(abbreviated("bank", 4) == "bank");
  CHECK(abbreviated("abcdefgh", 5) == "ab…gh");
  CHECK(abbreviated("[abcdefgh]", 6) == "[ab…h]");
  CHECK(display_width(abbreviated("नमस्ते दुनिया", 6)) <= 6);
  CHECK(abbreviated("日本語日本語", 6) == "日…語");
  CHECK(abbreviated("abc", 1) == "…");
}

TEST_CASE("white space of a token is visible") {
  CHECK(visible(" ") == "·");
  CHECK(visible("\n") == "↵");
  CHECK(visible("bank") == "bank");
}

TEST_CASE("control characters and malformed bytes become signs, and nothing else changes") {
  CHECK(printable("bank\n\tकेक … 日本") == "bank\n\tकेक … 日本");
  CHECK(printable(std::string_view("\0\x1b[31m\a\r\x7f", 9)) == "␀␛[31m␇␍␡");
  CHECK(printable("a\xC2\x9b"
                  "31m\xC2\xA0") == "a�31m\xC2\xA0");  // C1, and a no-break space
  CHECK(printable("\x9b\x1b[m\xE0\x1b") == "�␛[m�␛");
  CHECK(visible("\x1b x\n") == "␛·x↵");
  CHECK(table({{"\x1bword"}, {"\x1b[2J\tx"}}, 80) == "␛word\n──────\n␛[2J⇥x\n");
}

TEST_CASE("numbers are flush right and texts flush left") {
  CHECK(
      table(
          {{"word", "n", "answer", "share"}, {"a", "7", "river", "5%"}, {"bank", "10", "it", "-"}},
          80) ==
      "word   n  answer  share\n"
      "────  ──  ──────  ─────\n"
      "a      7  river      5%\n"
      "bank  10  it          -\n");
}

TEST_CASE("a mean with its standard deviation is a number") {
  CHECK(table({{"loss"}, {"0.5 ± 0.1"}, {"-"}}, 80) ==
        "     loss\n"
        "─────────\n"
        "0.5 ± 0.1\n"
        "        -\n");
}

TEST_CASE("the end of a line in a cell does not end the table's line") {
  CHECK(table({{"text"}, {"a\nb"}}, 80) == "text\n────\na↵b\n");
}

TEST_CASE("a table that is too wide abbreviates its texts") {
  const std::string path(50, 'p');
  const std::string text = table({{"parameter", "mean"}, {path, "0.1234"}}, 40);
  CHECK(widest_line(text) == 40);
  CHECK(text.find("…") != text.npos);
  CHECK(text.find("0.1234") != text.npos);
}

TEST_CASE("a table of too many columns becomes several that begin with the first column") {
  Rows rows = {{"parameter"}, {"encoder.layers.0.attention.w_q.weight"}};
  for (int i = 0; i < 12; ++i) {
    rows[0].push_back(fmt::format("column {}", i));
    rows[1].push_back(fmt::format("{}.5000", i));
  }
  const std::string text = table(rows, 80);
  CHECK(widest_line(text) <= 80);
  for (int i = 0; i < 12; ++i) CHECK(text.find(fmt::format(" {}.5000", i)) != text.npos);
  std::size_t parts = 0;
  for (auto at = text.find("encoder.layers.0.attention.w_q.weight"); at != text.npos;
       at = text.find("encoder.layers", at + 1))
    ++parts;
  CHECK(parts >= 2);
}
