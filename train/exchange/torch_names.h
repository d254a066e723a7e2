#pragma once

#include <map>
#include <string>

#include "core/tensor.h"
#include "layers/options.h"

/// Parameters named as PyTorch's own modules name them, so that `load_state_dict` takes them:
///
///     encoder.*, decoder.*    torch.nn.TransformerEncoder, torch.nn.TransformerDecoder; a decoder
///                             without an encoder is a TransformerEncoder with a causal mask
///     recurrent.*             torch.nn.RNN, GRU or LSTM, whose names qkv has anyway
///
/// The activation between linear1 and linear2 is GELU by the tanh approximation.
namespace qkv {

using Parameters = std::map<std::string, Tensor>;

/// The parameters under these names; the weights of queries, keys and values become one. Throws
/// UserError naming the option that makes a model something that these modules cannot be.
Parameters to_torch_names(const Parameters& parameters, const ModelOptions& model);

/// The inverse. Throws UserError when the weights of queries, keys and values cannot be parted.
Parameters from_torch_names(const Parameters& parameters);

}  // namespace qkv
