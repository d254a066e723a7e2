#include "cli/document.h"

#include <cmath>

namespace qkv {
namespace {

/// Null where it is missing.
Json value_at(const Json& record, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  return record.contains(at) ? record[at] : Json();
}

std::string cell_of(const Json& value, const Column& column) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  return fmt::format(fmt::runtime(column.number), value.get<double>());
}

}  // namespace

Cells table_of(const Json& records, const std::vector<Column>& columns) {
  Cells rows(1);
  for (const Column& column : columns) rows[0].push_back(column.head);
  for (const Json& record : records) {
    rows.emplace_back();
    for (const Column& column : columns)
      rows.back().push_back(cell_of(value_at(record, column.pointer), column));
  }
  return rows;
}

HeatMap map_of(const Json& records, const std::vector<Column>& columns) {
  HeatMap map;
  for (const Json& record : records) {
    map.rows.push_back(value_at(record, columns[0].pointer).get<std::string>());
    map.cells.emplace_back();
    for (std::size_t c = 1; c < columns.size(); ++c) {
      const Json value = value_at(record, columns[c].pointer);
      map.cells.back().push_back(value.is_number() ? value.get<double>() : std::nan(""));
    }
  }
  for (std::size_t c = 1; c < columns.size(); ++c) map.columns.push_back(columns[c].head);
  return map;
}

}  // namespace qkv
