#include "datasets/encoded_text.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/random.h"
#include "datasets/text.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

namespace {

std::string whole(const BlockedText& text) {
  std::string all;
  for (Index i = 0; i < text.blocks(); ++i) all += text.block(i);
  return all;
}

BlockedText read(const TempDir& dir, std::string_view text) {
  ReadCallback silent;
  return BlockedText(dir.write("f.txt", text), silent);
}

/// Lines, long words and long runs of characters of one to four bytes.
std::string mixed_text() {
  std::string text;
  const Random random(1, Purpose::testing);
  for (std::uint64_t i = 0; i < 6000; ++i) {
    constexpr const char* parts[] = {"a", "é", "न", "\U0001F3E6"};
    text += parts[random.bits(2 * i) % 4];
    if (i > 4000) continue;
    if (random.bits(2 * i + 1) % 8 == 0) text += ' ';
    if (random.bits(2 * i + 1) % 97 == 1) text += '\n';
  }
  return text + '\n';
}

}  // namespace

TEST_CASE("a text is its blocks, none of which is long or ends inside a character") {
  const TempDir dir;
  const std::string text = mixed_text();
  const BlockedText blocked = read(dir, text);
  CHECK(whole(blocked) == text);
  CHECK(blocked.characters() == std::ssize(characters(text)));
  for (Index i = 0; i < blocked.blocks(); ++i) {
    CHECK(blocked.block(i).size() <= 1024);
    CHECK(is_utf8(blocked.block(i)));
  }
}

TEST_CASE("a file's text has no byte order mark, LF for its line ends, and ends with LF") {
  const TempDir dir;
  const std::string x(1023, 'x'), y(1023, 'y');
  const std::pair<std::string, std::string> cases[] = {
      {"\xEF\xBB\xBFone\r\ntwo\n", "one\ntwo\n"},
      {"one\ntwo", "one\ntwo\n"},
      {"one\ntwo\r", "one\ntwo\n"},
      {"one\r\ntwo\r\n", "one\ntwo\n"},
      {"one\rtwo", "one\ntwo\n"},
      {"one\rtwo\r", "one\ntwo\n"},
      {"a\rb\n", "a\rb\n"},
      {"one\r\r\n", "one\r\n"},
      {"\xEF\xBB\xBF", "\n"},
      {x + "\r\n" + y + "\r\n", x + "\n" + y + "\n"},
  };
  for (const auto& [bytes, text] : cases) {
    CAPTURE(bytes);
    const BlockedText blocked = read(dir, bytes);
    CHECK(whole(blocked) == text);
    CHECK(blocked.characters() == std::ssize(text));
  }
}

TEST_CASE("a text is cut at any character") {
  const TempDir dir;
  for (const std::string& text : {mixed_text(), std::string("ab\r\nc é"), std::string("abc")}) {
    const std::string all = whole(read(dir, text));
    const auto size = std::ssize(characters(all));
    for (Index count = 0; count <= size; count += std::max<Index>(size / 50, 1)) {
      CAPTURE(count);
      BlockedText begin = read(dir, text);
      const BlockedText end = begin.cut_off(count);
      REQUIRE(whole(begin) + whole(end) == all);
      REQUIRE(end.characters() == count);
      REQUIRE(begin.characters() == size - count);
      begin += end;
      REQUIRE(whole(begin) == all);
    }
  }
}

TEST_CASE("what is not text is refused with its line") {
  const TempDir dir;
  const std::string not_utf8 = " is not valid UTF-8; save the file as UTF-8";
  const std::pair<std::string, std::string> cases[] = {
      {"", "f.txt: is empty"},
      {"good\nb\xff\x64\n", "f.txt:2:" + not_utf8},
      {std::string(5000, '\n') + "\xff", "f.txt:5001:" + not_utf8},
      {std::string(2000, '\x80'), "f.txt:1:" + not_utf8},
      {std::string("good\na\0b\n", 9),
       "f.txt:2: contains a zero byte; is it UTF-16? Save the file as UTF-8"},
  };
  for (const auto& [bytes, expected] : cases)
    CHECK(error_of<UserError>([&, text = bytes] {
            read(dir, text);
          }).substr(dir.path().string().size() + 1) == expected);
}

TEST_CASE("the ids of any part of a text are those of the whole, for any number of threads") {
  const TempDir dir;
  const std::string text = mixed_text();
  const BlockedText blocks = read(dir, text);
  ReadCallback silent;
  const int before = threads();
  for (const auto& row : tokenizer_kinds) {
    if (is_imported(row.value)) continue;  // their tokens are not learned
    CAPTURE(row.name);
    const Cutting cutting{row.value, false};
    PieceCounter counter(cutting);
    counter.add(text);
    set_threads(1);
    const Vocabulary::Counts counts = blocks.counts(cutting, silent);
    const Tokenizer tokenizer = Tokenizer::learn(cutting, counter.counts(), {.merges = 50});
    const EncodedText encoded(blocks, tokenizer, silent);
    const auto all = encoded.ids(0, encoded.size());
    REQUIRE(std::ssize(all) == encoded.size());
    for (Index begin = 0; begin + 70 < encoded.size(); begin += 61) {
      const auto part = encoded.ids(begin, begin + 70);
      REQUIRE(std::equal(part.begin(), part.end(), all.begin() + begin));
    }
    set_threads(3);
    CHECK(blocks.counts(cutting, silent) == counts);
    CHECK(EncodedText(blocks, tokenizer, silent).ids(0, encoded.size()) == all);
    set_threads(before);
    if (row.value != TokenizerKind::word) CHECK(tokenizer.decode(all) == text);
  }
}
