#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "train/config/config.h"

/// `qkv fit`: the choice of a model for a file of labelled texts.
namespace qkv {

/// The task whose format a file has: `tagging` for "*.conll" and "*.conllu", `word_sense` where
/// `word` is asked about or every row has an index between a label and a sentence, else `classify`.
/// Throws UserError as `for_each_row` does.
TaskKind task_kind_of(const std::filesystem::path& file, const std::string& word);

/// The candidates for such a task, the variants of a config whose data the overrides name. All
/// examples train, and the last checkpoint is the best. `pretrained`, a run or checkpoint, or
/// empty, adds a candidate that starts from it, with its layers and tokenizer (Devlin et al. 2019).
/// Throws ConfigError as `read_config` does, and as `read_checkpoint` does.
ConfigFile candidates_for(TaskKind kind, std::span<const std::string> overrides,
                          const std::filesystem::path& pretrained = {});

}  // namespace qkv
