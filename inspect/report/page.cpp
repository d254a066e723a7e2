#include "inspect/report/page.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "inspect/report/encode.h"

namespace qkv::report {

std::string page(std::string_view title, std::string_view data) {
  const std::string name = html_text(title), encoded = encoded_gzip(data);
  std::vector<PageFile> parts(page_files.begin(), page_files.end());
  parts.emplace_back("title", name);
  parts.emplace_back("data", encoded);
  const std::string_view frame = std::ranges::find(parts, "page.html", &PageFile::first)->second;
  std::string result;
  std::size_t from = 0;
  for (auto at = frame.find("{{"); at != frame.npos; at = frame.find("{{", from)) {
    const auto end = frame.find("}}", at);
    const std::string_view wanted = frame.substr(at + 2, end - at - 2);
    const auto part = std::ranges::find(parts, wanted, &PageFile::first);
    require<Error>(part != parts.end(), "[report] the page has no part {}", wanted);
    result += frame.substr(from, at - from);
    result += part->second;
    from = end + 2;
  }
  return result += frame.substr(from);
}

std::size_t characters_around_data() {
  std::size_t size = 0;
  for (const auto& [name, text] : page_files) size += text.size();
  return size;
}

}  // namespace qkv::report
