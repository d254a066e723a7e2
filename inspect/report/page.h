#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace qkv::report {

/// Name and content of a file that the page consists of; cmake/embed_files.cmake writes them.
using PageFile = std::pair<std::string_view, std::string_view>;
extern const std::span<const PageFile> page_files;

/// The report page around its data. Everything is inside: styles, D3, scripts, the engine.
std::string page(std::string_view title, std::string_view data);

/// A page without scripts in the colours of the report. `content` is HTML, `title` a text.
std::string plain_page(std::string_view title, std::string_view content);

/// Characters of a report page without title and data.
std::size_t characters_around_data();

}  // namespace qkv::report
