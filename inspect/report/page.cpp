#include "inspect/report/page.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "inspect/report/encode.h"

namespace qkv::report {
namespace {

/// The marks around a part that is compressed.
constexpr std::string_view packed_begin = "{{gzip}}", packed_end = "{{/gzip}}";

/// A text with each {{name}} replaced by the part of that name.
std::string filled(std::string_view text, std::span<const PageFile> parts) {
  std::string result;
  std::size_t from = 0;
  for (auto at = text.find("{{"); at != text.npos; at = text.find("{{", from)) {
    const auto end = text.find("}}", at);
    const std::string_view wanted = text.substr(at + 2, end - at - 2);
    const auto part = std::ranges::find(parts, wanted, &PageFile::first);
    require<Error>(part != parts.end(), "[report] the page has no part {}", wanted);
    result += text.substr(from, at - from);
    result += part->second;
    from = end + 2;
  }
  return result += text.substr(from);
}

std::string_view file_of(std::string_view name) {
  return std::ranges::find(page_files, name, &PageFile::first)->second;
}

}  // namespace

std::string page(std::string_view title, std::string_view data) {
  const std::string name = html_text(title), encoded = encoded_gzip(data);
  std::vector<PageFile> parts(page_files.begin(), page_files.end());
  parts.emplace_back("title", name);
  parts.emplace_back("data", encoded);
  const std::string_view frame = file_of("page.html");
  const auto begin = frame.find(packed_begin), end = frame.find(packed_end);
  require<Error>(begin != frame.npos && end != frame.npos, "[report] the page has no scripts");
  const auto inside = frame.substr(begin + packed_begin.size());
  return filled(frame.substr(0, begin), parts) +
         encoded_gzip(filled(inside.substr(0, end - begin - packed_begin.size()), parts)) +
         filled(frame.substr(end + packed_end.size()), parts);
}

std::string plain_page(std::string_view title, std::string_view content) {
  const std::string name = html_text(title);
  std::vector<PageFile> parts(page_files.begin(), page_files.end());
  parts.emplace_back("title", name);
  parts.emplace_back("content", content);
  return filled(file_of("plain.html"), parts);
}

std::size_t characters_around_data() {
  static const std::size_t size = page("", "").size();
  return size;
}

}  // namespace qkv::report
