#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/storage/checkpoint.h"

/// Models in the folders that Hugging Face's transformers writes.
namespace qkv {

/// The tokens of a `vocab.txt` in the order of its lines. Throws UserError naming file and line
/// when a line is empty, not UTF-8 or occurs twice, FileError when the file cannot be read.
std::vector<std::string> read_vocab_txt(const std::filesystem::path& file);
/// The tokens of a `vocab.json`, {TOKEN: ID, ...}, in the order of their ids, which must be all
/// from 0 on. Throws UserError.
std::vector<std::string> read_vocab_json(const std::filesystem::path& file);
/// The lines of a `merges.txt` but for a first one that begins with "#version". Throws UserError.
std::vector<std::string> read_merges(const std::filesystem::path& file);

struct ForeignModel {
  Checkpoint checkpoint;              ///< of a run at step 0
  std::vector<std::string> not_used;  ///< tensors that the model has no place for
};

/// Reads a folder with `config.json`, `model.safetensors` and
///
///     model_type  architectures                                 tokenizer
///     "bert"      BertModel, BertForMaskedLM,                   vocab.txt
///                 BertForPreTraining,
///                 BertForSequenceClassification
///     "gpt2"      GPT2Model, GPT2LMHeadModel                    vocab.json, merges.txt
///
/// with `tokenizer_config.json` where it is there. The tokens [PAD] and [UNK] of a BERT become
/// "<pad>" and "<unk>" with the ids 0 and 1; the rows of its embedding table follow. Throws
/// UserError naming the file, what is missing or not supported and what would be; FileError when a
/// file is damaged.
ForeignModel read_huggingface(const std::filesystem::path& folder);

}  // namespace qkv
