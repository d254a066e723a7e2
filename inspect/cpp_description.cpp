#include "inspect/cpp_description.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/kinds.h"
#include "core/weight_format.h"
#include "datasets/text.h"
#include "datasets/token_rules.h"
#include "datasets/unicode.h"
#include "datasets/word_pieces.h"
#include "inspect/cpp_unicode.h"
#include "inspect/report/encode.h"
#include "train/config/task_kinds.h"

namespace qkv::cpp_export {
namespace {

using Strings = std::vector<std::string>;

std::string literal(std::string_view text) {
  return escaped(text) + "sv";
}

/// Statements that fill the description `d`.
class DescriptionWriter {
 public:
  void boolean(std::string_view name, bool value) {
    if (value) assign(name, "true");
  }
  void assign(std::string_view name, std::string_view value) {
    text_ += fmt::format("    d.{} = {};\n", name, value);
  }
  void activation(ActivationKind kind) {
    std::string name(row_of(activation_kinds, kind).name);
    std::ranges::replace(name, '-', '_');
    assign("activation", "Activation::" + name);
  }
  void number(std::string_view name, Index value) { assign(name, std::to_string(value)); }
  void list(std::string_view name, const Strings& items) {
    if (items.empty()) return;
    text_ += fmt::format("    static constexpr std::string_view {}[] = {{\n        {}}};\n", name,
                         fmt::join(items, ",\n        "));
    text_ += fmt::format("    d.{0}.assign(std::begin({0}), std::end({0}));\n", name);
  }
  void texts(std::string_view name, const Strings& texts) {
    Strings literals;
    for (const std::string& text : texts) literals.push_back(literal(text));
    list(name, literals);
  }
  /// Strings of 64 lines each: compilers need not take literals of more than 64 KiB.
  void base64(std::string_view name, std::string_view digits) {
    constexpr std::size_t line = 96, lines = 64;
    Strings literals;
    for (std::size_t i = 0; i < digits.size(); i += line) {
      const bool begins = i % (line * lines) == 0, ends = (i + line) % (line * lines) == 0;
      const bool is_last = i + line >= digits.size();
      if (begins) literals.emplace_back();
      literals.back() += fmt::format("{}\"{}\"{}", begins ? "" : "\n        ",
                                     digits.substr(i, line), ends || is_last ? "sv" : "");
    }
    list(name, literals);
  }
  void parameters(const std::map<std::string, Tensor>& parameters, CppWeights format) {
    std::vector<float> floats;
    std::vector<std::int8_t> integers;
    text_ += "    d.parameters = {\n";
    for (const auto& [path, value] : parameters) {
      const bool is_int8 = format == CppWeights::int8 && value.rank() > 1;
      const Index rows = value.rank() > 1 ? value.dim(0) : 1, columns = value.size() / rows;
      text_ += fmt::format("        {{{}, {}, {}{}}},\n", literal(path), rows, columns,
                           is_int8 ? ", true" : "");
      const std::span<const float> data = value.data<float>();
      if (!is_int8) {
        floats.insert(floats.end(), data.begin(), data.end());
        continue;
      }
      const auto width = static_cast<std::size_t>(columns), before = integers.size();
      integers.resize(before + data.size());
      const std::span to = std::span(integers).subspan(before);
      for (std::size_t i = 0; i < data.size(); i += width)
        floats.push_back(to_int8(data.subspan(i, width), to.subspan(i, width)));
    }
    text_ += "    };\n";
    base64("weights", report::encoded_floats(floats));
    base64("integers", report::encoded_bytes(
                           {reinterpret_cast<const char*>(integers.data()), integers.size()}));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// The tables of code points that a tokenizer reads, by their names in the description.
std::vector<std::pair<std::string_view, std::string>> tables_of(const Cutting& cutting) {
  std::vector<std::pair<std::string_view, std::string>> tables = {
      {"white_space", ranges_with(is_white)}, {"marks", ranges_with(is_mark)}};
  const auto add = [&](std::string_view name, std::string table) {
    tables.emplace_back(name, std::move(table));
  };
  if (normalizes(cutting)) {
    add("composed", composed_pairs());
    add("decomposed", decomposed_pairs());
    add("classes", combining_classes());
  }
  if (cutting.kind == TokenizerKind::word_piece) {
    add("left_out", ranges_with(is_no_word_piece));
    add("separate", ranges_with(is_word_of_its_own));
  }
  if (cutting.kind == TokenizerKind::word_piece && cutting.lower_case) {
    add("accents", ranges_with(is_nonspacing));
    add("cased", ranges_with(is_cased));
    add("ignorable", ranges_with(is_case_ignorable));
    add("lower", lower_pairs());
  }
  if (cutting.kind == TokenizerKind::byte_level) {
    add("letters", ranges_with(is_letter));
    add("numbers", ranges_with(is_number));
    add("spaces", ranges_with(is_space));
    std::string printable;
    for (const char32_t code : printable_bytes()) printable += utf8(code);
    add("printable", std::move(printable));
  }
  return tables;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '?')
      result += {'\\', c};
    else if (byte >= ' ' && byte < 0x7F)
      result += c;
    else
      result += fmt::format("\\{:03o}", byte);
  }
  return result + "\"";
}

bool normalizes(const Cutting& cutting) {
  return cutting.kind != TokenizerKind::byte_level;
}

std::string description_of(const LoadedModel& model, CppWeights format) {
  const ModelOptions& options = model.config.model;
  const Cutting cutting = cutting_of(model.config);
  DescriptionWriter d;
  d.number("width", options.width);
  d.number("layers", options.layers);
  d.number("heads", options.heads);
  d.number("max_length", options.max_length);
  d.assign("scale", options.scale ? "true" : "false");
  d.boolean("norm_last", options.norm == NormKind::post);
  d.assign("norm_epsilon", fmt::format("{}", norm_epsilon(options.kind)));
  d.activation(options.activation);
  d.boolean("sinusoidal",
            is_transformer(options.kind) && options.position == PositionKind::sinusoidal);
  d.boolean("rotary", options.position == PositionKind::rotary);
  d.boolean("causal", options.kind == ModelKind::decoder);
  d.boolean("lower_case", cutting.lower_case);
  d.number("ngrams", cutting.ngrams);
  d.number("reserved", model.task->vocabulary().reserved());
  d.boolean("truncate", model.config.task.truncate);
  d.boolean("tags", model.config.task.kind == TaskKind::tagging);
  for (const auto& [name, texts] : model.task->vocabularies()) d.texts(name, texts);
  for (const auto& [name, table] : tables_of(cutting)) d.base64(name, report::encoded_bytes(table));
  d.parameters(state_of(*model.network), format);
  return fmt::format(R"(inline const Description& description() {{
  static const Description model = [] {{
    using namespace std::string_view_literals;
    Description d;
{}    return d;
  }}();
  return model;
}}
)",
                     d.text());
}

}  // namespace qkv::cpp_export
