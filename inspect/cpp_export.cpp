#include "inspect/cpp_export.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "core/kinds.h"
#include "datasets/text.h"
#include "inspect/cpp_unicode.h"
#include "inspect/report/encode.h"
#include "train/config/task_kinds.h"

namespace qkv {
namespace {

using Strings = std::vector<std::string>;

constexpr std::string_view first_line = "// A model that qkv export wrote as a header of C++17";
constexpr std::string_view part_namespace = "qkv_model";

/// The part and class of a kind of model.
struct ModelPart {
  ModelKind value;
  std::string_view part, name;
};
constexpr auto model_parts = std::to_array<ModelPart>({
    {ModelKind::encoder, "transformer.h", "Transformer"},
    {ModelKind::bert, "transformer.h", "Transformer"},
    {ModelKind::decoder, "transformer.h", "Transformer"},
    {ModelKind::encoder_decoder, "transformer.h", "Transformer"},
    {ModelKind::recurrent, "recurrent.h", "Recurrent"},
    {ModelKind::convolution, "convolution.h", "Convolution"},
    {ModelKind::fixed_length, "fixed_length.h", "FixedLength"},
    {ModelKind::static_embedding, "static_embedding.h", "StaticEmbedding"},
});
static_assert(lists_every_kind(model_parts));

/// The class of a kind of tokenizer; empty: there is none.
struct TokenizerPart {
  TokenizerKind value;
  std::string_view name;
};
constexpr auto tokenizer_parts = std::to_array<TokenizerPart>({
    {TokenizerKind::word, "WordTokenizer"},
    {TokenizerKind::character, "CharacterTokenizer"},
    {TokenizerKind::bpe, "BytePairTokenizer"},
    {TokenizerKind::word_piece, ""},
    {TokenizerKind::byte_level, ""},
});
static_assert(lists_every_kind(tokenizer_parts));

constexpr std::string_view predict =
    R"(/// The labels with their probabilities: one answer for each word of a text that the model is asked
/// about, or one for the whole text. Throws std::invalid_argument when the text is not UTF-8,
/// empty, too long or has no such word.
inline std::vector<Prediction> predict(std::string_view text) {{
  return predictions_of<{tokenizer}, {model}>(text);
}}
)";
constexpr std::string_view translate =
    R"(/// The text that the model writes for another (`label`), and its probability. Throws
/// std::invalid_argument when the text is not UTF-8, empty or too long.
inline Prediction translate(std::string_view text) {{ return translation_of<{tokenizer}, {model}>(text); }}
)";
constexpr std::string_view generate =
    R"(/// The text with which the model continues a prompt, by at most `tokens` tokens. Throws
/// std::invalid_argument when the prompt is not UTF-8 or has no token that the model reads.
inline std::string generate(std::string_view prompt, std::size_t tokens,
                            const Sampling& sampling = {{}}) {{
  return continuation_of<{tokenizer}, {model}>(prompt, tokens, sampling);
}}
)";

/// The part of a task and the function that users call; empty: there is none.
struct TaskPart {
  TaskKind value;
  std::string_view part, function;
};
constexpr auto task_parts = std::to_array<TaskPart>({
    {TaskKind::word_sense, "predict.h", predict},
    {TaskKind::static_embedding, "", ""},
    {TaskKind::classify, "predict.h", predict},
    {TaskKind::coreference, "", ""},
    {TaskKind::translate, "predict.h", translate},
    {TaskKind::language_model, "generate.h", generate},
    {TaskKind::tagging, "predict.h", predict},
    {TaskKind::masked_language_model, "", ""},
});
static_assert(lists_every_kind(task_parts));

/// Throws UserError unless there are parts for the task and the tokenizer.
void require_parts(const Config& config) {
  Strings names;
  for (const TaskPart& part : task_parts)
    if (!part.part.empty())
      names.push_back(fmt::format("\"{}\"", row_of(task_kinds(), part.value).name));
  require<UserError>(
      !row_of(task_parts, config.task.kind).part.empty(),
      "a model of task.kind \"{}\" has no C++ header, only models of {} have; export "
      "it with --onnx FILE",
      row_of(task_kinds(), config.task.kind).name, fmt::format("{}", fmt::join(names, ", ")));
  const TokenizerKind tokenizer = cutting_of(config).kind;
  require<UserError>(
      !row_of(tokenizer_parts, tokenizer).name.empty(),
      "a C++ header has no tokenizer of imported models, as task.tokenizer \"{}\" is; "
      "export the model with --onnx FILE",
      row_of(tokenizer_kinds, tokenizer).name);
}

/// A text as a string literal. What is not printable ASCII is octal, and no two question marks
/// begin a trigraph.
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
  void parameters(const std::map<std::string, Tensor>& parameters) {
    std::vector<float> weights;
    text_ += "    d.parameters = {\n";
    for (const auto& [path, value] : parameters) {
      const Index rows = value.rank() > 1 ? value.dim(0) : 1;
      text_ += fmt::format("        {{{}, {}, {}}},\n", literal(path), rows, value.size() / rows);
      const auto data = value.data<float>();
      weights.insert(weights.end(), data.begin(), data.end());
    }
    text_ += "    };\n";
    base64("weights", report::encoded_floats(weights));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string description_of(const LoadedModel& model) {
  const ModelOptions& options = model.config.model;
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
  d.boolean("lower_case", cutting_of(model.config).lower_case);
  d.number("ngrams", cutting_of(model.config).ngrams);
  d.boolean("truncate", model.config.task.truncate);
  d.boolean("tags", model.config.task.kind == TaskKind::tagging);
  for (const auto& [name, texts] : model.task->vocabularies()) d.texts(name, texts);
  using namespace cpp_export;
  const std::pair<std::string_view, std::string> tables[] = {{"white_space", ranges_with(is_white)},
                                                             {"marks", ranges_with(is_mark)},
                                                             {"composed", composed_pairs()},
                                                             {"decomposed", decomposed_pairs()},
                                                             {"classes", combining_classes()}};
  for (const auto& [name, table] : tables) d.base64(name, report::encoded_bytes(table));
  d.parameters(state_of(*model.network));
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

/// Parts without the lines that they have as headers of their own, of which `includes` gets those
/// of the standard library.
std::string joined_parts(std::span<const std::string_view> names, std::set<std::string>& includes) {
  std::string text;
  for (const std::string_view name : names) {
    const auto part = std::ranges::find(cpp_model_files, name,
                                        &std::pair<std::string_view, std::string_view>::first);
    require<Error>(part != cpp_model_files.end(), "[export] there is no part {}", name);
    std::string_view rest = part->second;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (line.starts_with("#include <"))
        includes.emplace(line);
      else if (!line.starts_with('#') && line.find(part_namespace) == line.npos)
        text += std::string(line) + "\n";
    }
  }
  for (auto at = text.find("\n\n\n"); at != text.npos; at = text.find("\n\n\n", at))
    text.erase(at, 1);
  return std::string(trimmed(text)) + "\n";
}

}  // namespace

std::string cpp_namespace(const std::filesystem::path& file) {
  std::string name = "qkv";
  bool parts = true;
  for (const char c : file.stem().string()) {
    const bool is_part_of_name =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_part_of_name && parts) name += '_';
    if (is_part_of_name) name += c;
    parts = !is_part_of_name;
  }
  return name;
}

std::string cpp_header(const SavedModel& model, const std::filesystem::path& file) {
  require_parts(model.config);
  const ModelPart& kind = row_of(model_parts, model.config.model.kind);
  const TaskPart& task = row_of(task_parts, model.config.task.kind);
  const std::vector<std::string_view> names = {"description.h", "layers.h",     kind.part,
                                               "unicode.h",     "tokenizers.h", task.part};
  std::set<std::string> includes;
  const std::string parts = joined_parts(names, includes);
  const std::string_view tokenizer = row_of(tokenizer_parts, cutting_of(model.config).kind).name;
  const std::string function = fmt::format(
      fmt::runtime(task.function), fmt::arg("tokenizer", tokenizer), fmt::arg("model", kind.name));
  const std::string name = cpp_namespace(file);
  return fmt::format(
      "{}, from {} at step {}, by qkv {}.\n// The code around the weights is qkv's, under the "
      "Apache License 2.0.\n#pragma once\n\n{}\n\nnamespace {} {{\n\n{}\n{}\n{}\n"
      "}}  // namespace {}\n",
      first_line, escaped(model.config.name), model.step, QKV_VERSION, fmt::join(includes, "\n"),
      name, parts, description_of(model), function, name);
}

bool begins_as_cpp_export(std::string_view beginning) {
  return beginning.starts_with(first_line);
}

}  // namespace qkv
