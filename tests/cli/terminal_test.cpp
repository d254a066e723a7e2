#include "cli/terminal.h"

#include <doctest/doctest.h>

#include <clocale>

using namespace qkv;

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
  CHECK(in_one_line("a\n\x1b[2J\tx") == "a↵␛[2J⇥x");
}
