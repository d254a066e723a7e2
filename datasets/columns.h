#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "datasets/tsv.h"

namespace qkv {

/// A column of a form and the number of the field that holds it.
struct ColumnPlace {
  std::string_view column;
  std::size_t field;
};

/// Where the rows of a file have the columns of a form.
struct ColumnPlaces {
  bool has_header = false;  ///< the first row names the columns
  /// The columns that are read, in the order of the form; empty: all fields as they stand.
  std::vector<ColumnPlace> places = {};
  std::string why_not = {};  ///< why a first row that seems to be a header cannot be understood
};

/// Reads the columns from the first row of a file: `columns.chosen` are names in it or numbers
/// from 1, else it may have the usual names, as "sentiment" for a label. Whether it is a header
/// rather than an example of the same words, other rows tell. Throws UserError when the chosen
/// columns do not fit.
ColumnPlaces column_places(const TsvRow& first, const Columns& columns);

/// The names of a form's columns: "label<TAB>text" has label and text.
std::vector<std::string_view> columns_of(std::string_view form);

}  // namespace qkv
