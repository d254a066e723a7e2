#include "inspect/report/page.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "inspect/report/encode.h"

namespace qkv::report {

// cmake/embed_files.cmake writes these.
extern const std::string_view page_html, page_css, d3_js, parts_js, tokenizer_js, operations_js,
    model_js, task_js, live_js, panes_js, ablation_js, curves_js, attention_js, embedding_js,
    weights_js, page_js;

namespace {

using Part = std::pair<std::string_view, std::string_view>;

/// The parts that every page has.
std::vector<Part> fixed_parts() {
  return {{"css", page_css},
          {"d3", d3_js},
          {"parts", parts_js},
          {"tokenizer", tokenizer_js},
          {"operations", operations_js},
          {"model", model_js},
          {"task", task_js},
          {"live", live_js},
          {"panes", panes_js},
          {"ablation", ablation_js},
          {"curves", curves_js},
          {"attention", attention_js},
          {"embedding", embedding_js},
          {"weights", weights_js},
          {"page", page_js}};
}

}  // namespace

std::string page(std::string_view title, std::string_view json) {
  const std::string name = html_text(title), data = json_for_script(json);
  std::vector<Part> parts = fixed_parts();
  parts.emplace_back("title", name);
  parts.emplace_back("data", data);
  std::string result;
  std::size_t from = 0;
  for (auto at = page_html.find("{{"); at != page_html.npos; at = page_html.find("{{", from)) {
    const auto end = page_html.find("}}", at);
    const std::string_view wanted = page_html.substr(at + 2, end - at - 2);
    const auto part = std::ranges::find(parts, wanted, &Part::first);
    require<Error>(part != parts.end(), "[report] the page has no part {}", wanted);
    result += page_html.substr(from, at - from);
    result += part->second;
    from = end + 2;
  }
  return result += page_html.substr(from);
}

std::size_t characters_around_data() {
  std::size_t size = page_html.size();
  for (const auto& [name, text] : fixed_parts()) size += text.size();
  return size;
}

}  // namespace qkv::report
