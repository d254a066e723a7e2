#pragma once

#include "datasets/text_file.h"
#include "datasets/tsv.h"

namespace qkv {

inline std::vector<std::string> read_lines(const std::filesystem::path& path) {
  ReadCallback silent;
  std::vector<std::string> lines;
  for_each_line(path, silent, [&](std::size_t, const std::string& line) { lines.push_back(line); });
  return lines;
}

inline std::vector<TsvRow> read_tsv(const std::filesystem::path& path, const Columns& columns) {
  ReadCallback silent;
  std::vector<TsvRow> rows;
  for_each_row(path, columns, silent, [&](const TsvRow& row) { rows.push_back(row); });
  return rows;
}

}  // namespace qkv
