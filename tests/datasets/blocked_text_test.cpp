#include "datasets/blocked_text.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/random.h"
#include "datasets/encoded_text.h"
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

TEST_CASE("a file's text has no byte order mark, LF for CRLF, and ends with LF") {
  const TempDir dir;
  for (const char* text :
       {"\xEF\xBB\xBFone\r\ntwo\n", "one\ntwo", "one\ntwo\r", "one\r\ntwo\r\n"}) {
    CAPTURE(text);
    const BlockedText blocked = read(dir, text);
    CHECK(whole(blocked) == "one\ntwo\n");
    CHECK(blocked.characters() == 8);
  }
  CHECK(whole(read(dir, "a\rb\n")) == "a\rb\n");
  const std::string spread = std::string(1023, 'x') + "\r\n" + std::string(1023, 'y') + "\r\n";
  CHECK(whole(read(dir, spread)) == std::string(1023, 'x') + "\n" + std::string(1023, 'y') + "\n");
}

TEST_CASE("one CR belongs to the end of a line, and those before it to the line") {
  const TempDir dir;
  const BlockedText blocked = read(dir, "one\r\r\n");
  CHECK(whole(blocked) == "one\r\n");
  CHECK(blocked.characters() == 5);
}

TEST_CASE("the lines of a file without LF end with CR") {
  const TempDir dir;
  for (const char* text : {"one\rtwo", "one\rtwo\r"}) {
    CAPTURE(text);
    const BlockedText blocked = read(dir, text);
    CHECK(whole(blocked) == "one\ntwo\n");
    CHECK(blocked.characters() == 8);
  }
}

TEST_CASE("a file of a byte order mark is an empty line") {
  const TempDir dir;
  const BlockedText blocked = read(dir, "\xEF\xBB\xBF");
  CHECK(whole(blocked) == "\n");
  CHECK(blocked.characters() == 1);
}

TEST_CASE("a long run of bytes that end no character is refused") {
  const TempDir dir;
  for (const std::string begin : {"", "\r", "x\r"})
    CHECK(error_of<UserError>([&] {
            read(dir, begin + std::string(2000, '\x80'));
          }).ends_with(":1: is not valid UTF-8; save the file as UTF-8"));
}

TEST_CASE("a text is cut at any character") {
  const TempDir dir;
  for (const std::string& text : {mixed_text(), std::string("ab\r\nc é"), std::string("abc")}) {
    const std::string all = whole(read(dir, text));
    const auto letters = characters(all);
    const auto size = std::ssize(letters);
    for (Index count = 0; count <= size; count += std::max<Index>(size / 50, 1)) {
      CAPTURE(count);
      BlockedText begin = read(dir, text);
      const BlockedText end = begin.cut_off(count);
      REQUIRE(whole(begin) + whole(end) == all);
      REQUIRE(end.characters() == count);
      REQUIRE(std::ssize(characters(whole(end))) == count);
      REQUIRE(begin.characters() == size - count);
    }
  }
}

TEST_CASE("what is not text is refused with its line") {
  const TempDir dir;
  const auto error = [&](std::string_view text) {
    return error_of<UserError>([&] { read(dir, text); }).substr(dir.path().string().size() + 1);
  };
  CHECK(error("") == "f.txt: is empty");
  CHECK(error("good\nb\xff"
              "d\n") == "f.txt:2: is not valid UTF-8; save the file as UTF-8");
  CHECK(error(std::string(5000, '\n') + "\xff") ==
        "f.txt:5001: is not valid UTF-8; save the file as UTF-8");
  CHECK(error(std::string_view("good\na\0b\n", 9)) ==
        "f.txt:2: contains a zero byte; is it UTF-16? Save the file as UTF-8");
}

TEST_CASE("a file that is written to while it is in use is an error") {
  const TempDir dir;
  const BlockedText text = read(dir, "one\ntwo\n");
  dir.write("f.txt", "one\nthree\n");
  CHECK(error_of<FileError>([&] {
          text.block(0);
        }).ends_with("f.txt: was written to while it was in use; start again"));
}

TEST_CASE("the ids of any part of a text are those of the whole, whether they are kept or not") {
  const TempDir dir;
  const std::string text = mixed_text();
  for (const auto& row : tokenizer_kinds) {
    if (is_imported(row.value)) continue;  // their tokens are not learned
    CAPTURE(row.name);
    const Cutting cutting{row.value, false};
    PieceCounter counter(cutting);
    counter.add(text);
    ReadCallback silent;
    const auto tokenizer = std::make_shared<const Tokenizer>(
        Tokenizer::learn(cutting, counter.counts(), {.merges = 50}));
    const BlockedText blocks = read(dir, text);
    const EncodedText encoded(blocks, tokenizer, silent, 0);
    const auto all = encoded.ids(0, encoded.size());
    REQUIRE(std::ssize(all) == encoded.size());
    const EncodedText kept(blocks, tokenizer, silent, blocks.characters());
    REQUIRE(kept.size() == encoded.size());
    REQUIRE(kept.ids(0, kept.size()) == all);
    std::vector<std::int32_t> parts;
    encoded.for_each_part([&](std::span<const std::int32_t> part) {
      parts.insert(parts.end(), part.begin(), part.end());
    });
    REQUIRE(parts == all);
    for (Index begin = 0; begin + 70 < encoded.size(); begin += 61) {
      const auto part = encoded.ids(begin, begin + 70);
      REQUIRE(std::equal(part.begin(), part.end(), all.begin() + begin));
      REQUIRE(kept.ids(begin, begin + 70) == part);
    }
    if (row.value != TokenizerKind::word) {
      std::vector<std::int32_t> ids = all;
      CHECK(Tokenizer(cutting, encoded.tokenizer().vocabulary().tokens()).decode(ids) == text);
    }
  }
}
