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

void print_block(const Rows& rows) {
  print_result(table(rows));
}

void print_block(const Document::Picture& picture) {
  print_result(picture(colours(), output_width()));
}

void print_block(const Document::Note& note) {
  print_note(note.text + "\n");
}

void print_for_people(const Document& document) {
  for (const Document::Block& block : document.blocks)
    std::visit([](const auto& content) { print_block(content); }, block);
}

void stream_to_stdout(std::string_view text) {
  print_block(std::string(text));
  flush_results();
}

void print_json(const Document& document) {
  for (const Document::Block& block : document.blocks)
    if (const auto* note = std::get_if<Document::Note>(&block)) print_block(*note);
  if (!document.data.is_null())
    print_result(document.data.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

constexpr OutputFormat formats[] = {
    {nullptr, nullptr, print_for_people, stream_to_stdout},
    {"--json", "Print one JSON document on stdout", print_json, [](std::string_view) {}}};

}  // namespace

std::span<const OutputFormat> output_formats() {
  return formats;
}

}  // namespace qkv
