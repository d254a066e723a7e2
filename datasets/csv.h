#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "datasets/read_callback.h"

namespace qkv {

/// A record of a CSV file.
struct CsvRecord {
  std::size_t line;  ///< its first
  std::vector<std::string> fields;
};

/// Reads records of comma-separated values line by line (RFC 4180): a field in quotes may hold
/// commas, doubled quotes and line ends, which become spaces. Where the first line has no comma
/// outside quotes, semicolons or else tabs separate.
class CsvParser {
 public:
  explicit CsvParser(std::filesystem::path file) : file_(std::move(file)) {}

  /// Takes the next line; gives the record that ends with it. Throws UserError naming the line.
  std::optional<CsvRecord> add(std::size_t number, const std::string& line);
  /// Throws UserError when quotes are still open.
  void finish() const;

 private:
  std::filesystem::path file_;
  CsvRecord record_ = {};
  char separator_ = '\0';  ///< of the first line on
  bool in_quotes_ = false;
};

/// Calls `use` for each record of a CSV file. Throws as `for_each_line` (datasets/text_file.h) and
/// `CsvParser` do.
void for_each_record(const std::filesystem::path& file, ReadCallback& callback,
                     const std::function<void(CsvRecord& record)>& use);

}  // namespace qkv
