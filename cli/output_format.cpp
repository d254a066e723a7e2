#include "cli/output_format.h"

#include <unistd.h>

#include "cli/document.h"
#include "cli/standard_streams.h"

namespace qkv {
namespace {

/// A file or another program gets the text as it is, a terminal none that moves its cursor.
void print_block(const std::string& text) {
  print_result(isatty(STDOUT_FILENO) == 1 ? printable(text) : text);
}

void print_block(const Cells& rows) {
  print_result(table(rows));
}

void print_block(const Document::Line& line) {
  print_block(line.text);
}

void print_block(const Picture& picture) {
  print_result(in_terminal(picture, colours(), output_width()));
}

void print_block(const Document::Note& note) {
  print_note(note.text + "\n");
}

/// An empty line stands before a picture that is shown, and between two tables.
void print_for_people(const Document& document) {
  const Document::Block* before = nullptr;
  for (const Document::Block& block : document.blocks) {
    const auto* picture = std::get_if<Picture>(&block);
    const bool is_shown = picture && !(picture->needs_colours && colours() == Colours::none);
    const bool follows_table = before && std::holds_alternative<Cells>(*before);
    if (is_shown ? before != nullptr : follows_table && std::holds_alternative<Cells>(block))
      print_result("\n");
    std::visit([](const auto& content) { print_block(content); }, block);
    if (!std::holds_alternative<Document::Note>(block)) before = &block;
  }
}

void stream_to_stdout(std::string_view text) {
  print_block(std::string(text));
  flush_results();
}

void print_notes(const Document& document) {
  for (const Document::Block& block : document.blocks)
    if (const auto* note = std::get_if<Document::Note>(&block)) print_block(*note);
}

void print_json(const Document& document) {
  print_notes(document);
  if (!document.data.is_null()) print_result(text_of(document.data, 2) + "\n");
}

const Cells* table_in(const Document::Block& block) {
  if (const auto* line = std::get_if<Document::Line>(&block)) return &line->rows;
  return std::get_if<Cells>(&block);
}

/// An empty line stands between two tables.
template <std::string (*to_text)(const Cells&)>
void print_tables(const Document& document) {
  print_notes(document);
  std::string text;
  for (const Document::Block& block : document.blocks)
    if (const Cells* rows = table_in(block)) text += (text.empty() ? "" : "\n") + to_text(*rows);
  if (text.empty() && !document.data.is_null())
    print_note("this result has no table; --json prints it\n");
  print_result(text);
}

void stream_nothing(std::string_view) {}

constexpr OutputFormat formats[] = {
    {nullptr, nullptr, print_for_people, stream_to_stdout},
    {"--json", "Print one JSON document on stdout", print_json, stream_nothing},
    {"--csv", "Print the tables as comma-separated values", print_tables<to_csv>, stream_nothing},
    {"--markdown", "Print the tables in Markdown", print_tables<to_markdown>, stream_nothing},
    {"--latex", "Print the tables in LaTeX", print_tables<to_latex>, stream_nothing}};

}  // namespace

std::span<const OutputFormat> output_formats() {
  return formats;
}

}  // namespace qkv
