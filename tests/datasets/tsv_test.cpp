#include "datasets/tsv.h"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include "datasets/csv.h"
#include "datasets/sentences.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

namespace {

using Fields = std::vector<std::vector<std::string>>;

class Messages : public ReadCallback {
 public:
  void on_message(const std::string& line) override { lines.push_back(line); }
  std::vector<std::string> lines;
};

std::vector<TsvRow> read_rows(const std::filesystem::path& file) {
  ReadCallback silent;
  std::vector<TsvRow> rows;
  for_each_row(file, silent, [&](TsvRow& row) { rows.push_back(std::move(row)); });
  return rows;
}

Fields fields_of(const std::filesystem::path& file) {
  Fields fields;
  for (const TsvRow& row : read_rows(file)) fields.push_back(row.fields);
  return fields;
}

std::string csv_error(std::string_view text) {
  const TempDir dir;
  const auto file = dir.write("f.csv", text);
  return error_of<UserError>([&] { read_rows(file); }).substr(dir.path().string().size() + 1);
}

}  // namespace

TEST_CASE("a header line is skipped with a message, an example of the same words is not") {
  const TempDir dir;
  const auto rows = [&](std::string_view text, std::size_t skipped) {
    Messages messages;
    std::size_t count = 0;
    const auto file = dir.write("f.tsv", text);
    for_each_row(file, classify_columns, messages, [&](const TsvRow&) { ++count; });
    CHECK(messages.lines.size() == skipped);
    if (skipped) CHECK(messages.lines[0] == file.string() + ":1: skipped the header");
    return count;
  };
  CHECK(rows("label\ttext\ngood\tfine\n", 1) == 1);
  CHECK(rows("Sentiment\tReview_Text\ngood\tfine\n", 1) == 1);
  CHECK(rows("text\tsentence\nsong\tla\ntext\tword\n", 0) == 3);
  CHECK(rows("class\ta word of mine\nsong\tla\n", 0) == 2);
  CHECK(rows("label\ttext\n", 0) == 1);
}

TEST_CASE("a message says which columns a header in another order names, and what is not read") {
  const TempDir dir;
  Messages messages;
  const auto file = dir.write("f.csv", "id,review,sentiment\n1,fine,good\n");
  for_each_row(file, classify_columns, messages, [](const TsvRow&) {});
  REQUIRE(messages.lines.size() == 1);
  CHECK(messages.lines[0] == file.string() +
                                 ":1: label from \"sentiment\", text from \"review\" by the "
                                 "header; not read: \"id\"");
}

TEST_CASE("a CSV file has commas, doubled quotes and line ends inside quotes") {
  const TempDir dir;
  CHECK(fields_of(dir.write("f.CSV", "good,\"fine, \"\"really\"\"\"\r\nbad,\"a\nb\"\n\n,\nx,\n")) ==
        Fields{{"good", "fine, \"really\""}, {"bad", "a b"}, {"x", ""}});
  CHECK(fields_of(dir.write("g.csv", "label,text\n\"a\tb\",c\n")) == Fields{{"a\tb", "c"}});
}

TEST_CASE("records of a CSV file are read one by one, a missing file is an error") {
  const TempDir dir;
  std::vector<std::string> read;
  ReadCallback silent;
  for_each_record(dir.write("a.csv", "a,b\n1,\"x\ny\"\n"), silent, [&](const CsvRecord& record) {
    read.push_back(fmt::format("{}: {}", record.line, fmt::join(record.fields, "|")));
  });
  CHECK(read == std::vector<std::string>{"1: a|b", "2: 1|x y"});
  CHECK_THROWS_AS(for_each_record(dir.path() / "none.csv", silent, [](const CsvRecord&) {}),
                  UserError);
}

TEST_CASE("a CSV record is named by its first line, misplaced quotes by their own") {
  const TempDir dir;
  CHECK(read_rows(dir.write("f.csv", "a,\"b\nc\"\nd,e\n"))[1].place ==
        (dir.path() / "f.csv").string() + ":3");
  CHECK(csv_error("a,b\nc,\"d\n") == "f.csv:2: the quotes of a field are not closed");
  CHECK(csv_error("a,\"b\"c\n") ==
        "f.csv:1: text follows the quotes of a field; double the quotes inside it");
  CHECK(csv_error("a,b\"c\n") ==
        "f.csv:1: a quote inside a field; put the field in quotes and double this one");
}
