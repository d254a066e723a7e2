#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/storage/checkpoint.h"

/// Models in the folders that Hugging Face's transformers writes.
namespace qkv {

struct ForeignModel {
  Checkpoint checkpoint;                       ///< of a run at step 0
  std::vector<std::string> not_used;           ///< tensors that the model has no place for
  std::vector<std::string> added_tokens = {};  ///< text that spells one is cut like other text
};

/// Reads a folder with `config.json`, `model.safetensors` and
///
///     model_type  architectures                                 tokenizer
///     "bert"      BertModel, BertForMaskedLM,                   vocab.txt
///                 BertForPreTraining,
///                 BertForSequenceClassification
///     "gpt2"      GPT2Model, GPT2LMHeadModel                    vocab.json, merges.txt
///
/// with `tokenizer_config.json` and `added_tokens.json` where they are there. A classifier without
/// `id2label` has the labels LABEL_0, LABEL_1, ... A row of the embedding table without a token is
/// called "[no token ID]". The tokens [PAD] and [UNK] of a BERT become
/// "<pad>" and "<unk>" with the ids 0 and 1; the rows of its embedding table follow. Throws
/// UserError naming the file, what is missing or not supported and what would be; FileError when a
/// file is damaged.
ForeignModel read_huggingface(const std::filesystem::path& folder);

}  // namespace qkv
