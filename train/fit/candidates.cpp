#include "train/fit/candidates.h"

#include <fmt/format.h>

#include "core/error.h"
#include "datasets/tsv.h"
#include "train/config/option_list.h"
#include "train/storage/checkpoint.h"
#include "train/storage/run_folder.h"

namespace qkv {
namespace {

/// The tables that all candidates share.
constexpr std::string_view common = R"(
[optimizer]
kind = "adam"
lr = 4e-3

[schedule]
kind = "cosine"
warmup = 20

[train]
epochs = 10
batch = 32
ema = 0.98
eval_every = 200
checkpoint_every = 1000
keep = 1
)";

/// Log-count ratios: Wang & Manning 2012. Bag of words and pairs: Joulin et al. 2017. Convolution:
/// Kim 2014. LSTM of both directions: Graves & Schmidhuber 2005. Attention: Vaswani et al. 2017,
/// without a feed-forward block.
constexpr std::string_view classify = R"(
[task]
kind = "classify"
valid_share = 0
truncate = true
word_dropout = 0.5

[model]
kind = "convolution"
width = 64
layers = 1
embedding_std = 0.2
dropout = 0.5

[[variant]]
name = "log-count ratios"
model.kind = "static"
model.init = "naive-bayes"
model.dropout = 0
train.epochs = 1
optimizer.lr = 1e-4

[[variant]]
name = "log-count ratios of words and pairs"
task.ngrams = 2
model.kind = "static"
model.init = "naive-bayes"
model.max_length = 1024
model.dropout = 0
train.epochs = 5

[[variant]]
name = "bag of words and pairs"
task.ngrams = 2
model.kind = "static"
model.width = 16
model.max_length = 1024
model.dropout = 0
optimizer.lr = 1e-2

[[variant]]
name = "attention"
model.kind = "encoder"
model.position = "rotary"
model.feed_forward = 0
model.norm = "none"
model.dropout = 0.3

[[variant]]
name = "LSTM of both directions"
model.kind = "recurrent"
model.bidirectional = true

[[variant]]
name = "narrow convolution"

[[variant]]
name = "wide convolution"
model.width = 192
)";

/// Candidates for the vector of a word: windows of neighbours with log-count ratios, and attention
/// whose positions are windows.
constexpr std::string_view word_sense = R"(
[task]
kind = "word-sense"
valid_share = 0
truncate = true
word_dropout = 2
class_weights = "balanced"

[model]
kind = "encoder"
width = 64
layers = 1
heads = 8
position = "windows"
max_distance = 9
feed_forward = 0
norm = "none"
embedding_std = 0.1
dropout = 0.3

[[variant]]
name = "log-count ratios of all words"
task.word_dropout = 3
model.init = "naive-bayes"
model.attention = "uniform"
model.position = "none"
model.width = 72
model.heads = 9
model.dropout = 0
train.epochs = 0
train.steps = 100
train.ema = 0.95
optimizer.lr = 1e-4

[[variant]]
name = "log-count ratios of windows"
task.word_dropout = 3
model.init = "naive-bayes"
model.width = 72
model.heads = 9
model.dropout = 0
train.epochs = 0
train.steps = 100
train.ema = 0.95
optimizer.lr = 1e-4

[[variant]]
name = "uniform attention"
model.attention = "uniform"
model.position = "none"

[[variant]]
name = "attention"

[[variant]]
name = "attention, 40 epochs"
train.epochs = 40
)";

/// Recurrent networks of both directions for labels of words: Graves & Schmidhuber 2005.
constexpr std::string_view tagging = R"(
[task]
kind = "tagging"
valid_share = 0
truncate = true

[model]
kind = "encoder"
width = 64
layers = 2
heads = 4
dropout = 0.3

[[variant]]
name = "static embedding"
model.kind = "static"
model.dropout = 0

[[variant]]
name = "LSTM of both directions"
model.kind = "recurrent"
model.layers = 1
model.bidirectional = true

[[variant]]
name = "attention"

[[variant]]
name = "attention, 40 epochs"
train.epochs = 40
)";

std::string_view variants_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::classify:
      return classify;
    case TaskKind::word_sense:
      return word_sense;
    case TaskKind::tagging:
      return tagging;
    case TaskKind::static_embedding:
    case TaskKind::coreference:
    case TaskKind::translate:
    case TaskKind::language_model:
    case TaskKind::masked_language_model:
      break;
  }
  throw ValueError("there are no candidates for this task");
}

/// The candidate that starts from a trained model and is trained further.
std::string fine_tuned(TaskKind kind, const std::filesystem::path& pretrained) {
  const auto file = find_checkpoint(pretrained);
  const Config trained =
      stored_config(read_checkpoint(file, CheckpointPart::without_optimizer).config, file);
  Config config;
  config.model = trained.model;
  config.model.dropout = 0.1;
  config.task.kind = kind;
  config.task.tokenizer = trained.task.tokenizer;
  config.task.lower_case = trained.task.lower_case;
  std::string toml =
      fmt::format("\n[[variant]]\nname = \"fine-tuned\"\ntrain.init = {}\noptimizer.lr = 1e-3\n",
                  toml_string(std::filesystem::absolute(pretrained).string()));
  for (const Option& option : options_of(config)) {
    const bool is_of_tokens = option.key == "task.tokenizer" || option.key == "task.lower_case";
    if (option.has_effect(config) && (option.key.starts_with("model.") || is_of_tokens))
      toml += fmt::format("{} = {}\n", option.key, option.print());
  }
  return toml;
}

/// Whether a field counts words.
bool is_index(const std::string& field) {
  return !field.empty() && field.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

TaskKind task_kind_of(const std::filesystem::path& file, const std::string& word) {
  if (const auto name = file.extension(); name == ".conll" || name == ".conllu")
    return TaskKind::tagging;
  if (!word.empty()) return TaskKind::word_sense;
  bool has_indices = true;
  ReadCallback silent;
  for_each_row(file, silent, [&](const TsvRow& row) {
    has_indices = has_indices && row.fields.size() == 3 && is_index(row.fields[1]);
  });
  return has_indices ? TaskKind::word_sense : TaskKind::classify;
}

ConfigFile candidates_for(TaskKind kind, std::span<const std::string> overrides,
                          const std::filesystem::path& pretrained) {
  std::string toml = fmt::format("name = \"fit\"\n{}{}", common, variants_of(kind));
  if (!pretrained.empty()) toml += fine_tuned(kind, pretrained);
  return parse_config_file(toml, "the candidates", {}, overrides);
}

}  // namespace qkv
