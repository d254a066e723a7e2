// Compiled in place of onnx_export.cpp where the ONNX library is missing.
#include "inspect/onnx_export.h"

namespace qkv {

std::string onnx_bytes(const LoadedModel&, const std::map<std::string, std::string>&) {
  throw FileError(
      "qkv was built without ONNX; install the library (Debian: apt-get install libonnx-dev "
      "libprotobuf-dev) and build again, not as a static program");
}

bool begins_as_onnx_export(std::string_view) {
  return false;
}

}  // namespace qkv
