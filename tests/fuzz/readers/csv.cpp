// Data in comma-separated values.
#include "datasets/csv.h"

#include "datasets/tsv.h"
#include "tests/fuzz/readers/input.h"

namespace {

/// The fields as a line with each in quotes.
std::string quoted(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    line += line.empty() ? "\"" : ",\"";
    for (const char c : field) line += c == '"' ? std::string(2, c) : std::string(1, c);
    line += '"';
  }
  return line;
}

}  // namespace

void qkv::fuzz::read(std::span<const std::byte> input) {
  const auto file = file_of(input, "input.csv");
  ReadCallback silent;
  for_each_row(file, silent, [&](const TsvRow& row) {
    demand(!row.fields.empty());
    CsvParser parser(file);
    const auto again = parser.add(1, quoted(row.fields));
    demand(again && again->fields == row.fields);
    parser.finish();
  });
}
