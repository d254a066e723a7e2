#include "datasets/text.h"

#include <doctest/doctest.h>

#include <iterator>

#include "core/error.h"
#include "datasets/text_file.h"
#include "tests/support/errors.h"
#include "tests/support/read_files.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

using Words = std::vector<std::string>;

TEST_CASE("well-formed UTF-8 of every length is accepted") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("bank \u00e9 \u0915\u0947 \U0001F3E6 \U0010FFFF"));
}

TEST_CASE("malformed UTF-8 is refused") {
  for (const char* text : {"\x80", "\xc3", "\xc3(", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                           "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "\xff", "ok \xe0\xa4"}) {
    CAPTURE(text);
    CHECK_FALSE(is_utf8(text));
  }
}

TEST_CASE("data is split at white space alone") {
  CHECK(words("  don't  stop , now\t") == Words{"don't", "stop", ",", "now"});
  CHECK(words(" \t ").empty());
}

TEST_CASE(
    "every character of White_Space, the zero-width space and the byte order mark part words") {
  const char32_t white[] = {0x09,   0x0A,   0x0B,   0x0C,   0x0D,   0x20,   0x85,   0xA0,   0x1680,
                            0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008,
                            0x2009, 0x200A, 0x200B, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF};
  std::size_t found = 0;
  for (char32_t code = 0; code <= 0x10FFFF; ++code) found += is_white(code);
  CHECK(found == std::size(white));
  for (const char32_t code : white) {
    CAPTURE(static_cast<std::uint32_t>(code));
    CHECK(words("a" + utf8(code) + "b") == Words{"a", "b"});
    CHECK(trimmed(utf8(code) + "a b" + utf8(code)) == "a b");
  }
  CHECK(trimmed("\u00A0 \u3000").empty());
  CHECK(words("a\u200Cb\u200Dc\u00ADd") == Words{"a\u200Cb\u200Dc\u00ADd"});  // joiners, hyphen
}

TEST_CASE("lines are read without their ends and without a byte order mark") {
  const TempDir dir;
  CHECK(read_lines(dir.write("a", "\xEF\xBB\xBFone\r\ntwo\n\nlast")) ==
        Words{"one", "two", "", "last"});
  CHECK(read_lines(dir.write("a", "one\rtwo\r\rlast\r")) == Words{"one", "two", "", "last"});
  CHECK(read_lines(dir.write("a", "one\rtwo\nlast\n")) == Words{"one\rtwo", "last"});
}

TEST_CASE("a file that is not text is refused with its name and line") {
  const TempDir dir;
  const auto error = [&](std::string_view text) {
    const auto file = dir.write("f", text);
    return error_of<UserError>([&] { read_lines(file); }).substr(dir.path().string().size() + 1);
  };
  CHECK(error("good\nb\xff"
              "d\n") == "f:2: is not valid UTF-8; save the file as UTF-8");
  CHECK(error(std::string_view("good\na\0b\n", 9)) ==
        "f:2: contains a zero byte; is it UTF-16? Save the file as UTF-8");
  CHECK(error("\xFF\xFEg") == "f: is UTF-16; save the file as UTF-8");
  CHECK(error("") == "f: is empty");
}

TEST_CASE("a missing file and a folder are refused by name") {
  const TempDir dir;
  const std::string missing = dir.path() / "none";
  CHECK(error_of<UserError>([&] { read_lines(missing); }) ==
        missing + ": cannot be read: No such file or directory");
  CHECK(error_of<UserError>([&] { read_lines(dir.path()); }) ==
        dir.path().string() + ": is a folder, not a file");
}
