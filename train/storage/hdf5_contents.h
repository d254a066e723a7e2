#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace qkv::hdf5 {

/// A dataset or an attribute.
struct Values {
  enum class Type { float32, float64, int64, text };
  Type type;
  std::size_t width;  ///< bytes of an element
  Shape shape;
  std::span<const std::byte> bytes;  ///< of the file
};

/// A group of a file and everything below it. Members throw Hdf5Error naming the object where it is
/// missing or of another type or rank.
struct Contents {
  std::string path = {};  ///< "/model"; empty: the root
  std::map<std::string, std::unique_ptr<const Contents>> groups = {};
  std::map<std::string, Values> datasets = {}, attributes = {};

  std::vector<std::string> names() const;
  const Contents& group(const std::string& name) const;
  std::int64_t integer_attribute(const std::string& name) const;
  std::string text_attribute(const std::string& name) const;
  Tensor tensor(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;
};

}  // namespace qkv::hdf5
