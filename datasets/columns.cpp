#include "datasets/columns.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "datasets/text.h"

namespace qkv {
namespace {

/// A column of a form and how files name it, in whole or at the end ("airline_sentiment").
struct UsualNames {
  std::string_view column, names;
};
constexpr std::string_view label_names =
    "label class category sense sentiment tag target intent topic emotion polarity rating";
constexpr std::string_view text_names =
    "text sentence review message question comment content tweet document body utterance";
constexpr auto usual_names = std::to_array<UsualNames>({
    {"label", label_names},
    {"text", text_names},
    {"sentence", text_names},
    {"index", "index position word"},
    {"antecedent_index", "antecedent antecedent_index"},
    {"pronoun_index", "pronoun pronoun_index"},
    {"source", "source src input"},
    {"target", "target tgt output translation"},
    {"clean", "clean"},
    {"corrupt", "corrupt"},
});

enum class Match { none, at_the_end, whole };

/// How a field of a header names a column.
Match match_of(std::string_view field, std::string_view names) {
  constexpr std::size_t most_words = 2;
  std::string name = lower(field);
  Match best = Match::none;
  if (words(name).size() > most_words) return best;
  for (const std::string& usual : words(names))
    for (const std::string& form : {usual, usual + "s"}) {
      if (name == form) return Match::whole;
      if (name.ends_with(form)) best = Match::at_the_end;
    }
  return best;
}

std::string_view names_of(std::string_view column) {
  const auto found = std::ranges::find(usual_names, column, &UsualNames::column);
  return found == usual_names.end() ? std::string_view() : found->names;
}

/// The field that alone matches best, at least at the end.
std::optional<std::size_t> field_named(const std::vector<std::string>& header,
                                       std::string_view column) {
  for (const Match wanted : {Match::whole, Match::at_the_end}) {
    const auto matches = [&](const std::string& field) {
      return match_of(field, names_of(column)) == wanted;
    };
    const auto found = std::ranges::find_if(header, matches);
    if (found == header.end()) continue;
    if (std::any_of(found + 1, header.end(), matches)) return std::nullopt;
    return static_cast<std::size_t>(found - header.begin());
  }
  return std::nullopt;
}

bool names_a_column(const std::string& field) {
  return std::ranges::any_of(usual_names, [&](const UsualNames& usual) {
    return match_of(field, usual.names) != Match::none;
  });
}

/// Whether fields are named by numbers alone, as "v1,v2" or "0,1": what programs write where nobody
/// named the columns.
bool are_numbered(const std::vector<std::string>& fields) {
  std::string before;
  std::optional<Index> last;
  int numbered = 0;
  for (const std::string& field : fields) {
    if (field.empty()) continue;
    const auto digits = field.find_last_not_of("0123456789") + 1;
    const auto number = number_in(std::string_view(field).substr(digits));
    const std::string name = field.substr(0, digits);
    if (!number || (last && (name != before || *number != *last + 1))) return false;
    last = number;
    before = name;
    ++numbered;
  }
  return numbered > 1 && before.find(' ') == before.npos;
}

/// Whether a first row that is no header of the usual names must be one all the same.
bool seems_to_be_header(const std::vector<std::string>& fields,
                        std::span<const std::string_view> form) {
  if (are_numbered(fields)) return true;
  const auto has_space = [](const std::string& field) { return words(field).size() > 1; };
  if (std::ranges::any_of(fields, has_space)) return false;
  return std::ranges::any_of(fields, [&](const std::string& field) {
    return std::ranges::any_of(form, [&](std::string_view column) {
      return match_of(field, names_of(column)) == Match::whole;
    });
  });
}

/// The column without which there is nothing to read.
bool is_text_column(std::string_view column) {
  return column == "text" || column == "sentence" || column == "source";
}

std::string quoted_names(const std::vector<std::string>& names) {
  return fmt::format("\"{}\"", fmt::join(names, "\", \""));
}

ColumnPlaces chosen_places(const TsvRow& first, const Columns& columns,
                           std::span<const std::string_view> form) {
  const std::vector<std::string>& chosen = columns.chosen;
  require<UserError>(chosen.size() == form.size(),
                     "task.columns must have the {} columns {}, got {}", form.size(),
                     fmt::format("{}", fmt::join(form, ", ")), quoted_names(chosen));
  ColumnPlaces named, numbered;
  std::string missing;
  bool has_text = false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const auto found = std::ranges::find(first.fields, chosen[i]);
    if (found != first.fields.end()) {
      named.places.push_back({form[i], static_cast<std::size_t>(found - first.fields.begin())});
      has_text = has_text || is_text_column(form[i]);
    } else {
      missing = chosen[i];
    }
    const auto number = number_in(chosen[i]);
    if (number && *number > 0)
      numbered.places.push_back({form[i], static_cast<std::size_t>(*number - 1)});
  }
  named.has_header = missing.empty() || (columns.may_lack && has_text);
  if (named.has_header) return named;
  if (numbered.places.size() < form.size()) {
    first.demand(columns.may_lack, "the header has no column \"{}\" (task.columns); it has {}",
                 missing, quoted_names(first.fields));
    return {};
  }
  const auto last = std::ranges::max(numbered.places, {}, &ColumnPlace::field).field;
  first.demand(columns.may_lack || last < first.fields.size(),
               "there is no column {} (task.columns); the file has {}", last + 1,
               first.fields.size());
  numbered.has_header =
      std::ranges::all_of(first.fields, names_a_column) || are_numbered(first.fields);
  return numbered;
}

}  // namespace

std::vector<std::string_view> columns_of(std::string_view form) {
  constexpr std::string_view tab = "<TAB>";
  std::vector<std::string_view> names;
  for (auto at = form.find(tab); at != form.npos; at = form.find(tab)) {
    names.push_back(form.substr(0, at));
    form.remove_prefix(at + tab.size());
  }
  names.push_back(form);
  return names;
}

ColumnPlaces column_places(const TsvRow& first, const Columns& columns) {
  const auto form = columns_of(columns.form);
  if (!columns.chosen.empty()) return chosen_places(first, columns, form);
  ColumnPlaces places;
  if (first.fields.size() < 2 || form.size() < 2) return places;
  bool complete = true, has_text = false;
  for (const std::string_view column : form) {
    const auto field = field_named(first.fields, column);
    complete = complete && field;
    if (!field) continue;
    places.places.push_back({column, *field});
    has_text = has_text || is_text_column(column);
  }
  const bool all_named = std::ranges::all_of(first.fields, names_a_column);
  const bool seems_header = seems_to_be_header(first.fields, form);
  places.has_header = complete || (columns.may_lack && (all_named || (has_text && seems_header)));
  if (complete || (places.has_header && has_text)) return places;
  places.places.clear();
  if (!columns.may_lack && seems_header)
    places.why_not = fmt::format(
        "cannot tell which of the columns {} {} {}; name them so, or tell with task.columns, whose "
        "entries are their names or numbers from 1",
        quoted_names(first.fields), form.size() == 2 ? "are" : "are the", fmt::join(form, ", "));
  return places;
}

}  // namespace qkv
