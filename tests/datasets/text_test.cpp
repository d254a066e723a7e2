#include "datasets/text.h"

#include <doctest/doctest.h>

#include <iterator>

#include "core/error.h"
#include "core/random.h"
#include "datasets/text_file.h"
#include "tests/support/errors.h"
#include "tests/support/read_files.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

using Words = std::vector<std::string>;

namespace {

/// Up to 12 characters, each a letter, a mark or white space, of 1 to 4 bytes.
Words drawn_characters(const Random& random) {
  constexpr const char* all[] = {"a",      "Z",      "7",      "'",      "-",         ".",
                                 "\"",     " ",      "\t",     "\r",     "\u00e9",    "\u0436",
                                 "\u4e2d", "\u2019", "\u2010", "\u3002", "\u00a0",    "\u2003",
                                 "\u200b", "\u3000", "\ufeff", "\u0301", "\U0001F3E6"};
  Words drawn;
  for (std::uint64_t i = 1; i <= random.bits(0) % 13; ++i)
    drawn.emplace_back(all[random.bits(i) % std::size(all)]);
  return drawn;
}
char32_t code_of(const std::string& character) {
  return first_code_point(character).code;
}
bool is_letter_of_word(const std::string& character) {
  return !is_white(code_of(character)) && !is_mark(code_of(character));
}
std::string joined(const Words& characters, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) text += characters[i];
  return text;
}

}  // namespace

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

TEST_CASE("drawn texts are trimmed, split and cut as their characters say one by one") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Words all = drawn_characters(Random(seed, Purpose::testing));
    const std::size_t size = all.size();
    const std::string text = joined(all, 0, size);
    CAPTURE(text);
    Words expected(1);
    for (const std::string& character : all) {
      if (!is_white(code_of(character)))
        expected.back() += character;
      else if (!expected.back().empty())
        expected.emplace_back();
    }
    if (expected.back().empty()) expected.pop_back();
    CHECK(words(text) == expected);
    std::size_t begin = 0, end = size, word = 0;
    while (begin < size && is_white(code_of(all[begin]))) ++begin;
    while (end > begin && is_white(code_of(all[end - 1]))) --end;
    CHECK(trimmed(text) == joined(all, begin, end));
    CHECK(is_utf8(text));
    CHECK_FALSE(is_utf8(joined({text, "\xe4\xb8", text}, 0, 3)));
    if (size == 0) continue;
    while (word < size &&
           (is_letter_of_word(all[word]) || (word > 0 && is_inner_mark(code_of(all[word])) &&
                                             word + 1 < size && is_letter_of_word(all[word + 1]))))
      ++word;
    CHECK(word_length(text) == joined(all, 0, std::max(word, std::size_t{1})).size());
  }
}

TEST_CASE("malformed bytes at the end of a text are no white space") {
  CHECK(trimmed("a\xe2\x80\x83\x80") == "a\xe2\x80\x83\x80");
  CHECK(trimmed("a \x80") == "a \x80");
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
