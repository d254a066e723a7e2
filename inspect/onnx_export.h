#pragma once

#include <string>
#include <string_view>

#include "train/run/run.h"

namespace qkv {

/// The model as an ONNX file of operator set 17, whose batch and sequence lengths are dynamic.
///
///     inputs    ids [batch, time] and lengths [batch], int64: of a sequence the first tokens count
///               words [batch]: the word that is asked about (word senses, coreference)
///               output_ids [batch, output_time]: the translation so far, which begins with <bos>
///     outputs   logits: what the task asks for; [batch, labels] of a word or a text, [batch, time]
///               of coreference, [batch, time, labels or tokens] of tags and of a language model,
///               [batch, output_time, tokens] of a translation
///               contextual [batch, time, width]: a vector for each token
///               encoder.layers.0.attention.weights [batch, heads, time, time], and so on
///
/// A runtime computes those outputs alone that are asked for. Weights have their paths for names;
/// the metadata hold the config, the vocabulary and the labels as in `exported`
/// (train/exchange/exchange.h), of which `metadata` are those. Throws FileError where qkv was built
/// without the ONNX library, and when that library finds the model invalid.
std::string onnx_bytes(const LoadedModel& model,
                       const std::map<std::string, std::string>& metadata);

/// Whether a file begins as one that `onnx_bytes` gave.
bool begins_as_onnx_export(std::string_view beginning);

}  // namespace qkv
