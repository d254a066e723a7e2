#include "inspect/cpp_export.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/kinds.h"
#include "datasets/text.h"
#include "inspect/cpp_description.h"
#include "train/config/task_kinds.h"

namespace qkv {
namespace {

using Strings = std::vector<std::string>;

constexpr std::string_view first_line = "// A model that qkv export wrote as a header of C++17";
constexpr std::string_view part_namespace = "qkv_model";

/// The part of a kind of model or tokenizer, and the class that it has.
template <class Value>
struct Part {
  Value value;
  std::string_view part, name;
};
constexpr auto model_parts = std::to_array<Part<ModelKind>>({
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

constexpr auto tokenizer_parts = std::to_array<Part<TokenizerKind>>({
    {TokenizerKind::word, "learned_tokens.h", "WordTokenizer"},
    {TokenizerKind::character, "learned_tokens.h", "CharacterTokenizer"},
    {TokenizerKind::bpe, "learned_tokens.h", "BytePairTokenizer"},
    {TokenizerKind::word_piece, "word_pieces.h", "WordPieceTokenizer"},
    {TokenizerKind::byte_level, "byte_level.h", "ByteLevelTokenizer"},
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

/// Throws UserError unless there is a part for the task.
void require_part(const Config& config) {
  Strings names;
  for (const TaskPart& part : task_parts)
    if (!part.part.empty())
      names.push_back(fmt::format("\"{}\"", row_of(task_kinds(), part.value).name));
  require<UserError>(
      !row_of(task_parts, config.task.kind).part.empty(),
      "a model of task.kind \"{}\" has no C++ header, only models of {} have; export "
      "it with --onnx FILE",
      row_of(task_kinds(), config.task.kind).name, fmt::format("{}", fmt::join(names, ", ")));
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

std::string cpp_header(const SavedModel& model, const std::filesystem::path& file,
                       CppWeights format) {
  require_part(model.config);
  const auto& kind = row_of(model_parts, model.config.model.kind);
  const auto& tokenizer = row_of(tokenizer_parts, cutting_of(model.config).kind);
  const TaskPart& task = row_of(task_parts, model.config.task.kind);
  std::vector<std::string_view> names = {"description.h", "layers.h", kind.part, "unicode.h"};
  if (cpp_export::normalizes(cutting_of(model.config))) names.emplace_back("normalization.h");
  names.insert(names.end(), {"tokens.h", tokenizer.part, task.part});
  std::set<std::string> includes;
  const std::string parts = joined_parts(names, includes);
  const std::string function =
      fmt::format(fmt::runtime(task.function), fmt::arg("tokenizer", tokenizer.name),
                  fmt::arg("model", kind.name));
  const std::string name = cpp_namespace(file);
  return fmt::format(
      "{}, from {} at step {}, by qkv {}.\n// The code around the weights is qkv's, under the "
      "Apache License 2.0.\n#pragma once\n\n{}\n\nnamespace {} {{\n\n{}\n{}\n{}\n"
      "}}  // namespace {}\n",
      first_line, cpp_export::escaped(model.config.name), model.step, QKV_VERSION,
      fmt::join(includes, "\n"), name, parts, cpp_export::description_of(model, format), function,
      name);
}

bool begins_as_cpp_export(std::string_view beginning) {
  return beginning.starts_with(first_line);
}

}  // namespace qkv
