#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"

namespace qkv {

/// Tensors and texts by name, as https://github.com/huggingface/safetensors stores them:
///
///     8 bytes     n, little-endian
///     n bytes     the header in JSON, {"__metadata__": {NAME: TEXT, ...}, NAME: {"dtype": "F32",
///                 "shape": [2, 3], "data_offsets": [BEGIN, END]}, ...}, spaces at its end
///     the rest    the elements, little-endian; BEGIN and END count from here
struct Safetensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata = {};  ///< UTF-8
  std::vector<std::string> integers = {};  ///< names of tensors that are not read, of integers
};

/// A damaged or invalid file of this format.
struct SafetensorsError : FileError {
  using FileError::FileError;
};

/// The bytes of a file; equal contents give equal bytes. Throws SafetensorsError when a name or
/// text is not UTF-8, or a tensor is called "__metadata__". `integers` are left out.
std::string safetensors_bytes(const Safetensors& contents);

/// Bit for bit what was written, F32 and F64; F16 and BF16 become float32, which holds them
/// exactly. Throws UserError when there is no such file or it is another kind of file,
/// SafetensorsError naming the file and tensor when the header is not what the format allows: every
/// element belongs to one tensor, nothing is named twice.
Safetensors read_safetensors(const std::filesystem::path& path);

}  // namespace qkv
