#include "cli/output_format.h"

#include <cstdio>

#include "cli/document.h"

namespace qkv {
namespace {

void print_block(const std::string& text) {
  fmt::print("{}", text);
}

void print_block(const Rows& rows) {
  fmt::print("{}", table(rows));
}

void print_block(const Document::Picture& picture) {
  fmt::print("{}", picture(colours(), output_width()));
}

void print_block(const Document::Note& note) {
  fmt::print(stderr, "{}\n", note.text);
}

void print_for_people(const Document& document) {
  for (const Document::Block& block : document.blocks)
    std::visit([](const auto& content) { print_block(content); }, block);
}

void stream_to_stdout(std::string_view text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

void print_json(const Document& document) {
  for (const Document::Block& block : document.blocks)
    if (const auto* note = std::get_if<Document::Note>(&block)) print_block(*note);
  if (!document.data.is_null()) fmt::print("{}\n", document.data.dump(2));
}

constexpr OutputFormat formats[] = {
    {nullptr, nullptr, print_for_people, stream_to_stdout},
    {"--json", "Print one JSON document on stdout", print_json, [](std::string_view) {}}};

}  // namespace

std::span<const OutputFormat> output_formats() {
  return formats;
}

}  // namespace qkv
